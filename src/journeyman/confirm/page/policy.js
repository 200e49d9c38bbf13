// What the policy says, in words: which actions always ask, and what each rule wants. It is changed
// in its file, never from here.

import { tierPill } from "./card.js";
import { el } from "./dom.js";
import * as service from "./service.js";
import { shown } from "./shown_text.js";
import { many } from "./words.js";

function wants(rule) {
  return [
    rule.quorum > 1 ? `${rule.quorum} people` : null,
    rule.rate_limit ? `at most ${rule.rate_limit} an hour` : null,
    rule.edits === true ? "parameters may be changed" : null,
    rule.edits?.length ? `may be changed: ${rule.edits.join(", ")}` : null,
    rule.second_factor ? "code from an authenticator" : null,
    rule.self_approval ? "the person who asked may approve" : null,
    rule.file_params?.length ? `files bound: ${rule.file_params.join(", ")}` : null,
    rule.channels?.length ? `decided by ${rule.channels.join(", ")}` : null,
  ].filter(Boolean);
}

function ruleNode(rule) {
  return el("li", { class: "entry" },
    el("div", { class: "row-head" },
      el("span", { class: "action" }, shown(rule.action)), tierPill(rule.tier)),
    el("p", { class: "row-foot" }, wants(rule).map((words) => el("span", {}, shown(words)))),
    rule.reason ? el("p", { class: "quiet" }, shown(rule.reason)) : null);
}

export async function showPolicy() {
  const found = await service.policy();
  const never = found.never_bypass ?? [];
  const rules = found.rules ?? [];
  return {
    node: el("section", {}, el("h1", { tabindex: "-1" }, "Policy"),
      el("p", { class: "lead" }, "As the policy file says. An action that no rule knows waits for a person."),
      el("h2", {}, "Always asks"),
      el("p", { class: "hint" }, `${many(never.length, "action")} that no whitelist can skip.`),
      el("ul", { class: "tags" }, never.map((name) => el("li", {}, el("code", {}, shown(name))))),
      el("h2", {}, "Rules"),
      rules.length
        ? el("ul", { class: "rows" }, rules.map(ruleNode))
        : el("p", { class: "quiet" }, "No rules of your own; everything asks."),
      el("p", { class: "hint" }, "Digest of the policy: ", el("code", { class: "digest" }, found.digest))),
    title: "Policy", keys: {},
  };
}
