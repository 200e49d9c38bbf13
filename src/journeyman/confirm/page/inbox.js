// Everything that waits for a decision, the earliest deadline first, in pages. A settled one stays in
// its place, greyed out, until the reader turns the page or leaves the view.

import { statusPill, tierPill } from "./card.js";
import { button, el, say } from "./dom.js";
import * as service from "./service.js";
import { shown, visible } from "./shown_text.js";
import { secretName } from "./value.js";
import { left, many, share, TIER } from "./words.js";

const PAGE = 50;
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
  return { node, tick, status: card.status, state: rowState(card), due: new Date(card.expires_at) };
}

const empty = () =>
  el("div", { class: "empty" }, el("p", { class: "empty-head" }, "Nothing is waiting for you."),
    el("p", { class: "quiet" }, "New requests from agents appear here automatically."));

export async function showInbox(context) {
  const rows = new Map();
  let page = 0;
  const list = el("ol", { class: "rows" });
  const lead = el("p", { class: "lead" });
  const [earlier, place, later] = [button("Earlier", () => turn(-1)), el("span"), button("Later", () => turn(1))];
  const pager = el("nav", { class: "more", "aria-label": "Pages" }, earlier, place, later);
  const node = el("section", { class: "inbox" }, el("h1", { tabindex: "-1" }, "Inbox"), lead, list, pager);

  function turn(step) {
    page += step;
    rows.forEach((entry, id) => entry.status === "pending" || rows.delete(id));
    update();
    window.scrollTo(0, 0);
  }

  function update() {
    const ordered = [...rows.values()].sort((one, other) => one.due - other.due);
    const waiting = ordered.filter((entry) => entry.status === "pending").length;
    const wait = waiting === 1 ? "is" : "are";
    const order = waiting > 1 ? ", the earliest deadline first" : "";
    lead.textContent = rows.size ? `${many(waiting, "action")} ${wait} waiting for a person${order}.` : "";
    page = Math.max(0, Math.min(page, Math.ceil(ordered.length / PAGE) - 1));
    const start = page * PAGE;
    draw(ordered.slice(start, start + PAGE).map((entry) => entry.node));
    pager.hidden = ordered.length <= PAGE;
    place.textContent = `${start + 1} to ${start + list.children.length} of ${ordered.length}`;
    [earlier.disabled, later.disabled] = [page === 0, start + PAGE >= ordered.length];
    node.querySelector(".empty")?.remove();
    if (!rows.size) node.append(empty());
    context.counted(waiting);
  }

  // A row that stays is not touched, because a click may be on its way.
  function draw(nodes) {
    [...list.children].forEach((shownNode) => nodes.includes(shownNode) || shownNode.remove());
    nodes.forEach((next, at) => list.children[at] === next || list.insertBefore(next, list.children[at] ?? null));
  }

  function take(card) {
    const shownRow = rows.get(card.id);
    if (shownRow ? shownRow.state === rowState(card) : card.status !== "pending") return;
    const next = row(card);
    rows.set(card.id, next);
    const focused = shownRow?.node.contains(document.activeElement);
    if (!shownRow) say(`New: ${visible(card.action)} from ${card.requester}, ${card.tier}`);
    update();
    if (focused) next.node.querySelector("a").focus();
  }

  // After a lost connection: load what arrived and what was settled meanwhile.
  async function again() {
    const waiting = await service.waiting();
    const ids = new Set(waiting.map((card) => card.id));
    const gone = [...rows].filter(([id, entry]) => entry.status === "pending" && !ids.has(id));
    const settled = gone.length ? await service.cards({ limit: PAGE }) : [];
    gone.forEach(([id]) => rows.delete(id));
    settled.filter((card) => gone.some(([id]) => id === card.id)).forEach((card) => rows.set(card.id, row(card)));
    waiting.forEach((card) => rows.has(card.id) || rows.set(card.id, row(card)));
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
