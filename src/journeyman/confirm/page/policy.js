// The policy in words: which actions always ask, and what each rule requires. It can only be changed
// in its file.

import { tierPill } from "./card.js";
import { el } from "./dom.js";
import * as service from "./service.js";
import { shown } from "./shown_text.js";
import { many } from "./words.js";

function requirements(rule) {
  return [
    rule.quorum > 1 ? `${rule.quorum} people` : null,
    rule.rate_limit ? `up to ${rule.rate_limit} per hour` : null,
    rule.edits === true ? "parameters can be changed" : null,
    rule.edits?.length ? `can be changed: ${rule.edits.join(", ")}` : null,
    rule.self_approval ? "the requester may approve" : null,
    rule.file_params?.length ? `bound files: ${rule.file_params.join(", ")}` : null,
    rule.channels?.length ? `decided through ${rule.channels.join(", ")}` : null,
  ].filter(Boolean);
}

function ruleNode(rule) {
  return el("li", { class: "entry" },
    el("div", { class: "row-head" },
      el("span", { class: "action" }, shown(rule.action)), tierPill(rule.tier)),
    el("p", { class: "row-foot" }, requirements(rule).map((words) => el("span", {}, shown(words)))),
    rule.reason ? el("p", { class: "quiet" }, shown(rule.reason)) : null);
}

export async function showPolicy() {
  const policy = await service.policy();
  const never = policy.never_bypass ?? [];
  const rules = policy.rules ?? [];
  return {
    node: el("section", {}, el("h1", { tabindex: "-1" }, "Policy"),
      el("p", { class: "lead" }, "The policy file. An action without a matching rule waits for a person."),
      el("h2", {}, "Always asks"),
      el("p", { class: "hint" }, `${many(never.length, "action")} that the whitelist cannot skip.`),
      el("ul", { class: "tags" }, never.map((name) => el("li", {}, el("code", {}, shown(name))))),
      el("h2", {}, "Rules"),
      rules.length
        ? el("ul", { class: "rows" }, rules.map(ruleNode))
        : el("p", { class: "quiet" }, "There are no rules: every action needs approval."),
      el("p", { class: "hint" }, "Digest of the policy: ", el("code", { class: "digest" }, policy.digest))),
    title: "Policy", keys: {},
  };
}
