// Settled confirmations, newest first.

import { statusPill, tierPill } from "./card.js";
import { button, el } from "./dom.js";
import { summary } from "./inbox.js";
import * as service from "./service.js";
import { shown } from "./shown_text.js";
import { STATUS, TIER, time } from "./words.js";

const PAGE = 50;

function entry(card) {
  const decided = card.settled_by && card.status !== "expired";
  const who = decided ? ["by ", el("b", {}, shown(card.settled_by))] : ["requested by ", shown(card.requester)];
  return el("li", { class: "row" },
    el("a", { href: `#/card/${card.id}`, class: "row-link" },
      el("span", { class: "row-head" },
        el("span", { class: "action", dir: "ltr" }, shown(card.action)), statusPill(card.status),
        TIER[card.tier]?.strict ? tierPill(card.tier) : null),
      el("span", { class: "row-summary", dir: "ltr" }, summary(card.approved_details) || "no parameters"),
      el("span", { class: "row-foot" },
        el("span", {}, who),
        card.reason ? el("span", { class: "row-reason" }, "“", shown(card.reason), "”") : null,
        el("code", {}, shown(card.short_id)), el("span", { class: "row-clock" }, time(card.settled_at)))));
}

export async function showHistory(context, _, query) {
  const selected = query.get("status") ?? "";
  const list = el("ol", { class: "rows" });
  const older = button("Older", () => more(), { class: "more" });
  const change = () => context.go(`#/history${filter.value ? `?status=${filter.value}` : ""}`);
  const settled = Object.entries(STATUS).filter(([status]) => status !== "pending");
  const filter = el("select", { "aria-label": "Show", on: { change } },
    el("option", { value: "" }, "everything settled"),
    settled.map(([status, words]) => el("option", { value: status }, words)));
  filter.value = selected;
  let last = "";

  async function more() {
    const filters = { ...(selected ? { status: selected } : {}), ...(last ? { before: last } : {}) };
    const cards = await service.cards({ limit: PAGE, ...filters });
    list.append(...cards.filter((card) => card.status !== "pending").map(entry));
    last = cards.at(-1)?.id ?? last;
    older.hidden = cards.length < PAGE;
    nothing.hidden = list.children.length > 0;
  }

  const nothing = el("div", { class: "empty" }, el("p", { class: "empty-head" }, "Nothing here yet."));
  await more();
  return {
    node: el("section", {},
      el("div", { class: "head" }, el("h1", { tabindex: "-1" }, "History"), filter),
      list, nothing, older),
    title: "History", items: () => [...list.querySelectorAll("a.row-link")], keys: {},
  };
}
