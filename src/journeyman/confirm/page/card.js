// One confirmation: the exact facts first, the agent's own words last and marked as such, and the
// decision panel. It follows the service while it is open, and says when something changes.

import { decisionPanel } from "./decision.js";
import { button, el, note, say } from "./dom.js";
import { raw, table } from "./parameters.js";
import * as service from "./service.js";
import { hiddenIn, shown, visible } from "./shown_text.js";
import { Reading, valueNode } from "./value.js";
import { left, many, OUTCOME, share, STATUS, TIER, time } from "./words.js";

export const tierPill = (tier) => el("span", { class: `pill tone-${TIER[tier]?.tone ?? "plain"}` }, tier);
export const statusPill = (status) =>
  el("span", { class: `pill status-${status}` }, STATUS[status] ?? status);

// Outcomes that a person or an agent caused, as opposed to a timeout or a rule.
const CAUSED = new Set(["approved", "denied", "cancelled", "redeemed"]);

function fact(name, ...value) {
  return el("div", {}, el("dt", {}, name), el("dd", { dir: "ltr" }, value));
}

// Agents under these names are the gates of hosts, whose reason is the service's own.
const HOST = /^(claude-code|codex|hermes|opencode)(@|$)/;

function facts(card) {
  const { rule, reason } = card.details;
  const held = HOST.test(card.requester) && typeof rule === "string" && typeof reason === "string";
  const claimed = [" calls itself “", shown(card.claimed), "” (not verified)"];
  const needs = `${card.quorum} people; ${card.approvals} of ${card.quorum} approved`;
  const shared = `${many(card.submissions, "identical request")} share this confirmation`;
  return el("dl", { class: "facts" },
    fact("Requested by", el("b", {}, shown(card.requester)),
      card.claimed ? el("span", { class: "claimed" }, claimed) : ""),
    card.session_key ? fact("Session", shown(card.session_key)) : null,
    held ? fact("Why you are asked", shown(reason), " Rule ", el("code", {}, shown(rule))) : null,
    fact(held ? "Policy" : "Why you are asked", shown(card.rule),
      el("span", { class: "quiet meaning" }, TIER[card.tier]?.words ?? "")),
    fact("Requested at", time(card.created_at)),
    card.submissions > 1 ? fact("Waiting", shared) : null,
    card.quorum > 1 ? fact("Needs", needs) : null);
}

function hiddenNote(card) {
  const count =
    hiddenIn([card.action, card.requester, card.claimed, card.session_key], false) +
    hiddenIn([card.approved_details, card.description, card.context]);
  if (!count) return null;
  return note("warning", el("b", {}, many(count, "hidden character")), " in this request, shown as ",
    el("span", { class: "escape" }, "\\u{…}"), ". Such characters can make text look like something else.");
}

function notifyFailure(card) {
  if (card.notice?.status !== "failed") return null;
  const why = card.notice.error || "no channel worked";
  return note("plain", `No one could be notified of this (${why}). This page always works.`);
}

function outcome(card) {
  const by = CAUSED.has(card.status) && card.settled_by ? [" by ", el("b", {}, shown(card.settled_by))] : "";
  let used = "";
  if (card.redeemed_at) used = `Used at ${time(card.redeemed_at)}.`;
  else if (card.status === "approved" && card.redeem_by) {
    used = `The agent may use it once until ${time(card.redeem_by)}.`;
  }
  return el("section", { class: `outcome status-${card.status}`, role: "status", tabindex: "-1" },
    el("h2", {}, OUTCOME[card.status] ?? card.status, by),
    card.settled_at ? el("p", {}, time(card.settled_at)) : null,
    card.reason ? el("p", {}, "Reason: ", el("q", {}, shown(card.reason, { lines: true }))) : null,
    used ? el("p", { class: "quiet" }, used) : null,
    el("p", {}, el("a", { href: "#/inbox", class: "button" }, "Back to the inbox")));
}

function body(card, reading) {
  const files = Object.keys(card.context ?? {}).length;
  return [
    el("section", {},
      el("h2", {}, card.edited ? "What would run, as changed by an approver" : "What would run"),
      table(card.approved_details, reading, card.details), raw(card.approved_details)),
    files ? el("section", {}, el("h2", {}, "Bound files"),
      el("p", { class: "hint" },
        "Recorded by the service when the request arrived. If a file changes, the approval is void."),
      table(card.context, reading)) : null,
    el("section", {}, el("h2", {}, "Digest"), el("code", { class: "digest" }, card.digest),
      el("p", { class: "hint" }, "Your decision applies to exactly this and nothing else.")),
    el("section", { class: "own-words" }, el("h2", {}, "In the agent's own words (not verified)"),
      valueNode(card.description, "", reading)),
  ];
}

const NO_ANSWER =
  "No answer arrived, so it is unknown whether your decision was recorded. Look at the " +
  "confirmation again before you repeat it.";

function refusalWords(refusal) {
  const { code, about } = refusal;
  if (code === "already_settled") {
    const outcome = `${STATUS[about.status] ?? "settled"} by ${about.settled_by || "the service"}`;
    return `Too late: already ${outcome}, ${time(about.settled_at)}. Your decision had no effect.`;
  }
  if (refusal.status === 410) {
    return "Too late: it expired before your decision arrived. Expired means no.";
  }
  if (refusal.status === 412) {
    return "It changed after you read it, so nothing was decided. Read it again, then decide.";
  }
  return refusal.message;
}

export async function showCard(context, id) {
  let card = await service.card(id);
  let panel = null;
  let stopped = false;
  const top = el("div", { class: "card-top" });
  const notes = el("div", { class: "notes" });
  const content = el("div", { class: "card-body" });
  const side = el("div", { class: "card-side" });
  const clock = el("span", { class: "clock", role: "timer" });
  const bar = el("span", { class: "bar" });
  const page = el("article", { class: "card" }, top, notes, content, side);

  function draw(message = "") {
    const reason = panel?.reason() ?? "";
    panel?.stop();
    panel = null;
    const reading = new Reading(() => panel?.refresh());
    const waiting = card.status === "pending";
    top.replaceChildren(
      el("a", { href: "#/inbox", class: "back" }, "← Inbox"),
      el("div", { class: "pills" }, tierPill(card.tier), statusPill(card.status),
        el("code", { class: "short-id" }, shown(card.short_id))),
      el("h1", { class: "action", dir: "ltr", tabindex: "-1" }, shown(card.action)),
      waiting ? el("p", { class: "deadline" }, clock, el("span", { class: "track" }, bar)) : "");
    const all = [message ? note("warning", message) : null, hiddenNote(card), notifyFailure(card)];
    notes.replaceChildren(...all.filter(Boolean));
    content.replaceChildren(...[el("section", {}, facts(card)), ...body(card, reading)].filter(Boolean));
    if (!waiting) side.replaceChildren(outcome(card));
    else {
      panel = decisionPanel({ card, me: context.me, reading, reason, decide });
      side.replaceChildren(panel.node);
    }
    tick();
  }

  function take(next) {
    if (stopped || next.id !== card.id) return;
    const before = card;
    card = next;
    const moved = ["digest", "status", "quorum", "expires_at"].some((name) => before[name] !== next[name]);
    if (!moved && before.votes.length === next.votes.length) return;
    if (before.digest !== next.digest) {
      draw("This changed while you were looking. Everything below is new; read it again.");
    } else if (moved || !panel) draw();
    else {
      content.querySelector(".facts").replaceWith(facts(card));
      panel.counted(card);
    }
    say(next.status === "pending" ? "This confirmation changed." : side.querySelector("h2").innerText);
  }

  // A change received from the stream during the request is newer than its response.
  async function again() {
    const before = card;
    const latest = await service.card(card.id);
    if (card === before) take(latest);
  }

  async function decide(choice, ballot) {
    panel.busy(true);
    panel.say("");
    try {
      const after = await service[choice](card.id, ballot);
      take(after);
      side.firstElementChild?.focus();
    } catch (refusal) {
      const words = refusal instanceof service.Refused ? refusalWords(refusal) : NO_ANSWER;
      const now = await service.card(card.id).catch(() => null);
      if (now) take(now);
      panel?.busy(false);
      panel?.rearm();
      if (panel) panel.say(words);
      else notes.prepend(note("warning", words));
    }
  }

  function tick() {
    if (card.status !== "pending") return;
    const rest = card.deadline - Date.now();
    const whole = new Date(card.expires_at) - new Date(card.created_at);
    clock.textContent = rest > 0 ? `${left(card.deadline)} left` : "Time is up: the answer is no";
    bar.style.setProperty("inline-size", share(rest, whole));
    page.classList.toggle("urgent", rest < 60000);
    panel?.expired(rest <= 0);
  }

  const back = () => context.go("#/inbox");
  const rearm = () => panel?.rearm();
  window.addEventListener("focus", rearm);
  draw();
  return {
    node: page, title: `${visible(card.action)} · ${card.short_id}`, tick, take,
    again,
    start: () => top.querySelector("h1").focus(),
    keys: { a: () => panel?.toApprove(), d: () => panel?.toDeny(), u: back, Escape: back },
    stop: () => { stopped = true; panel?.stop(); window.removeEventListener("focus", rearm); },
  };
}
