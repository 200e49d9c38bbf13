// What waits for a decision, oldest first, so that a new card never moves the ones above it. A card
// that was settled stays in its place, greyed, until the reader goes elsewhere.

import { statusPill, tierPill } from "./card.js";
import { el, say } from "./dom.js";
import * as service from "./service.js";
import { shown, visible } from "./shown_text.js";
import { secretName } from "./value.js";
import { left, many, share } from "./words.js";

const SUMMARY_LENGTH = 160;

// Only for recognising a card in the list; what is decided on is shown in full on the card.
export function summary(details) {
  const parts = Object.entries(details).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const short = secretName(name) ? "••••" : text.slice(0, SUMMARY_LENGTH);
    return `${name} = ${short.replace(/\n+/g, " ↵ ")}`;
  });
  return visible(parts.join("   ").slice(0, SUMMARY_LENGTH));
}

// What a row shows, to leave it alone when nothing of it changed: a click may be on its way.
const said = (card) => JSON.stringify([card.status, card.digest, card.approvals, card.submissions]);

function row(card) {
  const clock = el("span", { class: "clock" });
  const bar = el("span", { class: "bar" });
  const node = el("li", { class: `row tier-${card.tier}-edge` },
    el("a", { href: `#/card/${card.id}`, class: "row-link" },
      el("span", { class: "row-head" },
        el("span", { class: "action", dir: "ltr" }, shown(card.action)), tierPill(card.tier),
        card.status === "pending" ? null : statusPill(card.status)),
      el("span", { class: "row-summary", dir: "ltr" }, summary(card.approved_details) || "no parameters"),
      el("span", { class: "row-foot" },
        el("span", {}, "asked by ", el("b", {}, shown(card.requester))),
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
  return { node, tick, status: card.status, said: said(card) };
}

const empty = () =>
  el("div", { class: "empty" }, el("p", { class: "empty-head" }, "Nothing waits for you."),
    el("p", { class: "quiet" }, "When an agent asks for something, it appears here by itself."));

export async function showInbox(context) {
  const rows = new Map();
  const list = el("ol", { class: "rows" });
  const lead = el("p", { class: "lead" });
  const node = el("section", { class: "inbox" }, el("h1", { tabindex: "-1" }, "Inbox"), lead, list);

  function settle() {
    const waiting = [...rows.values()].filter((one) => one.status === "pending").length;
    const wait = waiting === 1 ? "waits" : "wait";
    lead.textContent = rows.size ? `${many(waiting, "action")} ${wait} for a person.` : "";
    node.querySelector(".empty")?.remove();
    if (!rows.size) node.append(empty());
    context.counted(waiting);
  }

  function take(card) {
    const known = rows.get(card.id);
    if (known ? known.said === said(card) : card.status !== "pending") return;
    const next = row(card);
    rows.set(card.id, next);
    if (known) {
      const focused = known.node.contains(document.activeElement);
      known.node.replaceWith(next.node);
      if (focused) next.node.querySelector("a").focus();
    } else {
      list.append(next.node);
      say(`New: ${visible(card.action)} from ${card.requester}, ${card.tier}`);
    }
    settle();
  }

  // After a lost connection: what came and what was settled meanwhile.
  async function again() {
    const waiting = await service.cards({ status: "pending", limit: 200 });
    const here = new Set(waiting.map((card) => card.id));
    const gone = [...rows].some(([id, one]) => one.status === "pending" && !here.has(id));
    if (gone) (await service.cards({ limit: 200 })).filter((card) => rows.has(card.id)).forEach(take);
    for (const card of waiting.reverse()) {
      if (rows.has(card.id)) continue;
      rows.set(card.id, row(card));
      list.append(rows.get(card.id).node);
    }
    settle();
  }

  await again();
  return {
    node, title: "Inbox", take, again,
    tick: () => rows.forEach((one) => one.tick()),
    items: () => [...list.querySelectorAll("a.row-link")],
    keys: {},
  };
}
