// The whitelist: what is approved without asking, with forms to revoke and add entries. It never
// covers a critical action, and the page says so.

import { button, el, field, note } from "./dom.js";
import * as service from "./service.js";
import { shown, visible } from "./shown_text.js";
import { many, time } from "./words.js";

const SPANS = [
  ["3600", "1 hour"], ["86400", "1 day"], ["604800", "1 week"], ["2592000", "30 days"],
  ["", "until revoked"],
];
const KINDS = { equals: "is", one_of: "is one of", at_least: "is at least", at_most: "is at most" };

function constraintWords(name, constraint) {
  const conditions = Object.entries(KINDS)
    .filter(([kind]) => constraint[kind] !== undefined && constraint[kind] !== null)
    .map(([kind, words]) => `${words} ${JSON.stringify(constraint[kind])}`);
  return el("li", {}, el("code", {}, shown(name)), " ", shown(conditions.join(" and ") || "is anything"));
}

function otherWords(entry) {
  if (!Object.keys(entry.constraints).length) return "any parameters";
  return entry.other_parameters ? "other parameters may be anything" : "no other parameters";
}

function untilWords(entry) {
  if (entry.revoked_at) return `revoked by ${entry.revoked_by}, ${time(entry.revoked_at)}`;
  return entry.expires_at ? `until ${time(entry.expires_at)}` : "until revoked";
}

function entryNode(entry, again) {
  const rules = Object.entries(entry.constraints);
  const over = entry.revoked_at || (entry.expires_at && new Date(entry.expires_at) < new Date());
  const session = entry.session_key
    ? ["session ", el("code", {}, shown(entry.session_key))]
    : "every session";
  const used = entry.uses
    ? `used ${many(entry.uses, "time")}, last ${time(entry.last_used_at)}`
    : "not used yet";
  const answer = el("div", {});
  const revoke = button("Revoke", async () => {
    revoke.disabled = true;
    await service.revoke(entry.id).then(again, (refusal) => {
      answer.replaceChildren(note("problem", refusal.message));
      revoke.disabled = false;
    });
  }, { class: "deny small", "aria-label": `Revoke ${visible(entry.action)}` });
  return el("li", { class: `entry ${over ? "settled" : ""}` },
    el("div", { class: "row-head" },
      el("span", { class: "action" }, shown(entry.action)), over ? null : revoke),
    el("ul", { class: "rules" }, rules.map(([name, constraint]) => constraintWords(name, constraint)),
      el("li", { class: "quiet" }, otherWords(entry))),
    el("p", { class: "row-foot" },
      el("span", {}, "for ", entry.requester ? el("b", {}, shown(entry.requester)) : "every agent"),
      el("span", {}, "in ", session),
      el("span", {}, "by ", el("b", {}, shown(entry.added_by)), `, ${time(entry.added_at)}`),
      el("span", {}, untilWords(entry)), el("span", {}, used)),
    entry.reason ? el("p", { class: "quiet" }, "“", shown(entry.reason), "”") : null, answer);
}

// Parses JSON; everything else is text.
function readValue(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function constraintRow() {
  const name = el("input", { type: "text", "aria-label": "Parameter", placeholder: "parameter" });
  const kinds = Object.entries(KINDS).map(([key, words]) => el("option", { value: key }, words));
  const kind = el("select", { "aria-label": "Condition" }, kinds);
  const value = el("input", { type: "text", "aria-label": "Value", placeholder: "value" });
  const remove = button("×", () => node.remove(), { class: "small", "aria-label": "Remove this condition" });
  const node = el("div", { class: "constraint" }, name, kind, value, remove);
  const read = () => {
    const operand = readValue(value.value);
    const parameter = name.value.trim();
    // To the service, an `equals` of null is a missing condition.
    if (kind.value === "equals" && operand === null) return [parameter, "one_of", [null]];
    if (kind.value !== "one_of" || Array.isArray(operand)) return [parameter, kind.value, operand];
    return [parameter, "one_of", value.value.split(",").map((part) => readValue(part.trim()))];
  };
  return { node, read };
}

function entryForm(again) {
  const action = el("input", {
    type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
  });
  const requester = el("input", { type: "text", autocomplete: "off" });
  const session = el("input", { type: "text", autocomplete: "off" });
  const span = el("select", {}, SPANS.map(([value, words]) => el("option", { value }, words)));
  span.value = "86400";
  const others = el("input", { type: "checkbox" });
  const reason = el("input", { type: "text", maxlength: "500" });
  const rows = [];
  const constraints = el("div", {});
  const answer = el("div", {});
  const addRow = button("Add a condition", () => {
    const row = constraintRow();
    rows.push(row);
    constraints.append(row.node);
    row.node.querySelector("input").focus();
  }, { class: "small" });

  function read() {
    const constraintsByName = {};
    for (const row of rows.filter((candidate) => candidate.node.isConnected)) {
      const [name, kind, value] = row.read();
      if (name) constraintsByName[name] = { ...constraintsByName[name], [kind]: value };
    }
    const entry = {
      action: action.value.trim(), constraints: constraintsByName, other_parameters: others.checked,
    };
    if (requester.value.trim()) entry.requester = requester.value.trim();
    if (session.value.trim()) entry.session_key = session.value.trim();
    if (reason.value.trim()) entry.reason = reason.value.trim();
    if (span.value) entry.expires_in_seconds = Number(span.value);
    return entry;
  }

  const add = button("Approve without asking", async () => {
    add.disabled = true;
    try {
      await service.addToWhitelist(read());
      await again();
    } catch (refusal) {
      answer.replaceChildren(note("problem", refusal.message));
    } finally {
      add.disabled = false;
    }
  }, { class: "primary" });

  return el("details", { class: "adding" }, el("summary", {}, "Add an entry"),
    el("div", { class: "grid" }, field("Action", action, "The exact name that agents use."),
      field("Only for the agent", requester, "Empty: every agent."),
      field("Only in the session", session, "Empty: every session."), field("Duration", span)),
    el("div", { class: "field" },
      el("span", { class: "label" }, "Conditions on parameters"), constraints, addRow,
      el("span", { class: "hint" }, "Without a condition, every value is approved.")),
    el("label", { class: "check" }, others, " allow other parameters without a condition"),
    field("Reason", reason), answer, add);
}

const nothing = () =>
  el("li", { class: "empty" }, el("p", { class: "empty-head" }, "Nothing is approved without asking."),
    el("p", { class: "quiet" }, "Every action without a matching rule waits for a person."));

export async function showWhitelist() {
  const list = el("ul", { class: "rows" });
  const form = el("div", {});
  async function again() {
    const entries = await service.whitelist();
    const nodes = entries.map((entry) => entryNode(entry, again));
    list.replaceChildren(...(nodes.length ? nodes : [nothing()]));
    form.replaceChildren(entryForm(again));
  }
  await again();
  return {
    node: el("section", {}, el("h1", { tabindex: "-1" }, "Whitelist"),
      el("p", { class: "lead" },
        "What is approved without asking. Critical actions always ask, regardless of this list."),
      form, list),
    title: "Whitelist", keys: {},
  };
}
