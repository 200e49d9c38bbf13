// What was decided, newest first, with how people decide on top: approving nearly everything within
// seconds means that too much is asked.

import { statusPill, tierPill } from "./card.js";
import { button, el, note } from "./dom.js";
import { summary } from "./inbox.js";
import * as service from "./service.js";
import { shown } from "./shown_text.js";
import { many, span, STATUS, time } from "./words.js";

const PAGE = 50;
const TOO_MUCH =
  "Nearly everything is approved within seconds. Consider a whitelist entry or a rule for what is " +
  "always fine, so that the rest gets a real look.";
const TIRED = { decided: 20, rate: 0.95, seconds: 10 };

function figure(value, words) {
  return el("div", { class: "figure" }, el("b", {}, value), el("span", {}, words));
}

function statistics(found) {
  const decided = found.approved + found.denied;
  const rate = decided ? found.approved / decided : null;
  const tired = decided >= TIRED.decided && rate > TIRED.rate && found.median_decision_s < TIRED.seconds;
  return el("div", {},
    el("div", { class: "figures" },
      figure(rate === null ? "–" : `${Math.round(100 * rate)} %`,
        `approved of ${many(decided, "decision")}`),
      figure(span(found.median_decision_s), "median time to decide"),
      figure(String(found.expired), "expired unanswered"),
      figure(String(found.auto_approved), "let through")),
    el("p", { class: "hint" }, `The last ${found.days} days.`),
    tired ? note("plain", TOO_MUCH) : null);
}

function entry(card) {
  const decided = card.settled_by && card.status !== "expired";
  const who = decided ? ["by ", el("b", {}, shown(card.settled_by))] : ["asked by ", shown(card.requester)];
  return el("li", { class: "row" },
    el("a", { href: `#/card/${card.id}`, class: "row-link" },
      el("span", { class: "row-head" },
        el("span", { class: "action", dir: "ltr" }, shown(card.action)), statusPill(card.status),
        card.tier === "critical" ? tierPill(card.tier) : null),
      el("span", { class: "row-summary", dir: "ltr" }, summary(card.approved_details) || "no parameters"),
      el("span", { class: "row-foot" },
        el("span", {}, who),
        card.reason ? el("span", { class: "row-reason" }, "“", shown(card.reason), "”") : null,
        el("code", {}, shown(card.short_id)), el("span", { class: "row-clock" }, time(card.settled_at)))));
}

export async function showHistory(context, _, question) {
  const wanted = question.get("status") ?? "";
  const list = el("ol", { class: "rows" });
  const older = button("Older", () => more(), { class: "more" });
  const change = () => context.go(`#/history${filter.value ? `?status=${filter.value}` : ""}`);
  const settled = Object.entries(STATUS).filter(([status]) => status !== "pending");
  const filter = el("select", { "aria-label": "Show", on: { change } },
    el("option", { value: "" }, "everything settled"),
    settled.map(([status, words]) => el("option", { value: status }, words)));
  filter.value = wanted;
  let last = "";

  async function more() {
    const asked = { limit: PAGE, ...(wanted ? { status: wanted } : {}), ...(last ? { before: last } : {}) };
    const found = await service.cards(asked);
    list.append(...found.filter((card) => card.status !== "pending").map(entry));
    last = found.at(-1)?.id ?? last;
    older.hidden = found.length < PAGE;
    nothing.hidden = list.children.length > 0;
  }

  const nothing = el("div", { class: "empty" }, el("p", { class: "empty-head" }, "Nothing here yet."));
  const figures = statistics(await service.stats());
  await more();
  return {
    node: el("section", {},
      el("div", { class: "head" }, el("h1", { tabindex: "-1" }, "History"), filter),
      figures, list, nothing, older),
    title: "History", items: () => [...list.querySelectorAll("a.row-link")], keys: {},
  };
}
