// What waits for a decision, oldest first, so that a new confirmation never moves those above it.
// A settled one stays in its place, greyed out, until the reader leaves the view.

import { statusPill, tierPill } from "./card.js";
import { el, say } from "./dom.js";
import * as service from "./service.js";
import { shown, visible } from "./shown_text.js";
import { secretName } from "./value.js";
import { left, many, share, TIER } from "./words.js";

const SUMMARY_LENGTH = 160;

// Only to recognise it in the list; the confirmation itself shows everything.
export function summary(details) {
  const parts = Object.entries(details).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const short = secretName(name) ? "••••" : text.slice(0, SUMMARY_LENGTH);
    return `${name} = ${short.replace(/\n+/g, " ↵ ")}`;
  });
  return visible(parts.join("   ").slice(0, SUMMARY_LENGTH));
}

// What a row shows. A row without changes is not replaced, because a click may be on its way.
const rowState = (card) => JSON.stringify([card.status, card.digest, card.approvals, card.submissions]);

function row(card) {
  const clock = el("span", { class: "clock" });
  const bar = el("span", { class: "bar" });
  const node = el("li", { class: TIER[card.tier]?.strict ? "row strict-edge" : "row" },
    el("a", { href: `#/card/${card.id}`, class: "row-link" },
      el("span", { class: "row-head" },
        el("span", { class: "action", dir: "ltr" }, shown(card.action)), tierPill(card.tier),
        card.status === "pending" ? null : statusPill(card.status)),
      el("span", { class: "row-summary", dir: "ltr" }, summary(card.approved_details) || "no parameters"),
      el("span", { class: "row-foot" },
        el("span", {}, "requested by ", el("b", {}, shown(card.requester))),
        card.quorum > 1 ? el("span", {}, `${card.approvals} of ${card.quorum}`) : null,
        card.submissions > 1 ? el("span", {}, many(card.submissions, "request")) : null,
        el("code", {}, shown(card.short_id)), el("span", { class: "row-clock" }, clock)),
      el("span", { class: "track" }, bar)));
  const whole = new Date(card.expires_at) - new Date(card.created_at);
  const waits = card.status === "pending";
  node.classList.toggle("settled", !waits);
  if (!waits && card.settled_by && card.status !== "expired") clock.textContent = `by ${card.settled_by}`;
  const tick = () => {
    const rest = card.deadline - Date.now();
    if (waits) clock.textContent = rest > 0 ? left(card.deadline) : "time is up";
    bar.style.setProperty("inline-size", waits ? share(rest, whole) : "0");
    node.classList.toggle("urgent", waits && rest < 60000);
  };
  tick();
  return { node, tick, status: card.status, state: rowState(card) };
}

const empty = () =>
  el("div", { class: "empty" }, el("p", { class: "empty-head" }, "Nothing is waiting for you."),
    el("p", { class: "quiet" }, "New requests from agents appear here automatically."));

export async function showInbox(context) {
  const rows = new Map();
  const list = el("ol", { class: "rows" });
  const lead = el("p", { class: "lead" });
  const node = el("section", { class: "inbox" }, el("h1", { tabindex: "-1" }, "Inbox"), lead, list);

  function update() {
    const waiting = [...rows.values()].filter((entry) => entry.status === "pending").length;
    const wait = waiting === 1 ? "is" : "are";
    lead.textContent = rows.size ? `${many(waiting, "action")} ${wait} waiting for a person.` : "";
    node.querySelector(".empty")?.remove();
    if (!rows.size) node.append(empty());
    context.counted(waiting);
  }

  function take(card) {
    const shownRow = rows.get(card.id);
    if (shownRow ? shownRow.state === rowState(card) : card.status !== "pending") return;
    const next = row(card);
    rows.set(card.id, next);
    if (shownRow) {
      const focused = shownRow.node.contains(document.activeElement);
      shownRow.node.replaceWith(next.node);
      if (focused) next.node.querySelector("a").focus();
    } else {
      list.append(next.node);
      say(`New: ${visible(card.action)} from ${card.requester}, ${card.tier}`);
    }
    update();
  }

  // After a lost connection: load what arrived and what was settled meanwhile.
  async function again() {
    const waiting = await service.cards({ status: "pending", limit: 200 });
    const ids = new Set(waiting.map((card) => card.id));
    const isSettled = [...rows].some(([id, entry]) => entry.status === "pending" && !ids.has(id));
    if (isSettled) (await service.cards({ limit: 200 })).filter((card) => rows.has(card.id)).forEach(take);
    for (const card of waiting.reverse()) {
      if (rows.has(card.id)) continue;
      rows.set(card.id, row(card));
      list.append(rows.get(card.id).node);
    }
    update();
  }

  await again();
  return {
    node, title: "Inbox", take, again,
    tick: () => rows.forEach((entry) => entry.tick()),
    items: () => [...list.querySelectorAll("a.row-link")],
    keys: {},
  };
}
