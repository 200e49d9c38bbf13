// The panel where a person decides. Its buttons belong to no form, and stay disabled until the
// confirmation has been on screen for a moment and every requirement is met. Enter never approves.

import { button, el, field } from "./dom.js";
import { editor } from "./editing.js";
import { shown } from "./shown_text.js";
import { many, TIER, time } from "./words.js";

// Long enough that a click or key meant for something else has already landed.
const ARM_AFTER_MS = 800;

function voteList(card) {
  if (card.quorum < 2 && !card.votes.length) return null;
  const counted = card.votes.map((vote) =>
    el("li", {}, `${vote.choice === "approve" ? "Yes" : "No"} from `, el("b", {}, shown(vote.approver)),
      `, ${time(vote.at)}`, vote.digest === card.digest ? "" : " (on an earlier version; does not count)",
      vote.reason ? [": ", shown(vote.reason)] : ""));
  return el("div", { class: "votes" },
    el("p", {}, el("b", {}, `${card.approvals} of ${card.quorum}`), " approvals"),
    counted.length ? el("ul", {}, counted) : null);
}

function typedField(card, changed) {
  if (!TIER[card.tier]?.strict) return null;
  const input = el("input", {
    type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", on: { input: changed },
  });
  const id = el("code", {}, shown(card.short_id));
  const label = el("span", {}, "Type ", id, " to confirm that you mean this one");
  return { input, node: field(label, input) };
}

const votedFor = (card, me) =>
  card.votes.some(
    (vote) => vote.approver === me.name && vote.choice === "approve" && vote.digest === card.digest,
  );

export function decisionPanel({ card, me, reading, reason, decide }) {
  let voted = votedFor(card, me);
  const state = { armed: false, pressed: false, busy: false, expired: false, timer: 0 };
  const refresh = () => show();
  const why = el("textarea", { rows: "2", maxlength: "2000", class: "reason", value: reason });
  const typed = typedField(card, refresh);
  const edits = card.editable ? editor(card.approved_details, card.editable, refresh) : null;
  const missing = el("ul", { class: "missing", "aria-live": "polite" });
  const approve = button("Approve", (event) => press(event, "approve"), { class: "approve", disabled: true });
  const deny = button("Deny", (event) => press(event, "deny"), { class: "deny", disabled: true });
  const problem = el("div", { class: "answer", role: "alert" });

  // Browsers treat Enter on a focused button as a click; here it must not approve.
  for (const kind of ["keydown", "keypress", "keyup"]) {
    approve.addEventListener(kind, (event) => event.key === "Enter" && event.preventDefault());
  }
  for (const control of [approve, deny]) {
    control.addEventListener("pointerdown", () => (state.pressed = state.armed));
  }

  function requirements() {
    const list = [];
    if (TIER[card.tier]?.strict && reading.closed.size) {
      const [first] = reading.closed;
      list.push({ words: `Open ${many(reading.closed.size, "folded or covered value")}`, at: first });
    }
    if (typed && typed.input.value.trim() !== card.short_id) {
      list.push({ words: "Type the short id", at: typed.input });
    }
    const wrong = edits?.read().problem;
    if (wrong) list.push({ words: wrong, at: edits.node });
    return list;
  }

  function show() {
    const changes = edits?.read().edited;
    const done = voted && !changes;
    const unmet = done ? [] : requirements();
    const off = !state.armed || state.busy || state.expired;
    missing.replaceChildren(...unmet.map((item) => el("li", {}, item.words)));
    approve.disabled = off || done || unmet.length > 0;
    deny.disabled = off;
    approve.textContent = done ? "You approved" : changes ? "Approve with changes" : "Approve";
  }

  function press(event, choice) {
    // Ignore a press that began before the buttons were enabled.
    if (!state.armed || (event.detail > 0 && !state.pressed)) return;
    const edited = edits?.read().edited ?? null;
    // A denial applies whatever changed meanwhile; an approval only to what was shown.
    const ballot = choice === "approve" ? { digest: card.digest } : {};
    if (why.value.trim()) ballot.reason = why.value.trim();
    if (choice === "approve" && edited) ballot.details = edited;
    if (choice === "approve" && typed) ballot.typed = typed.input.value.trim();
    decide(choice, ballot);
  }

  function rearm() {
    state.armed = state.pressed = false;
    clearTimeout(state.timer);
    node.classList.add("arming");
    state.timer = setTimeout(() => {
      state.armed = true;
      node.classList.remove("arming");
      show();
    }, ARM_AFTER_MS);
    show();
  }

  const votes = el("div", {}, voteList(card));
  const byKeyboard = el("span", { class: "keyboard-only" },
    " With the keyboard: ", el("kbd", {}, "a"), " then ", el("kbd", {}, "Space"));
  const node = el("section", { class: "decision", "aria-label": "Your decision", tabindex: "-1" },
    el("h2", {}, "Your decision"), votes, edits?.node,
    field("Reason", why, "Optional. It is recorded, and the agent reads it."), typed?.node,
    missing, problem, el("div", { class: "buttons" }, deny, approve),
    el("p", { class: "hint" }, "Enter never approves.", byKeyboard));
  rearm();

  return {
    node, rearm, refresh,
    counted: (next) => {
      card = next;
      voted = votedFor(card, me);
      votes.replaceChildren(...[voteList(card)].filter(Boolean));
      rearm();
    },
    reason: () => why.value,
    busy: (on) => { state.busy = on; show(); },
    expired: (over) => {
      if (state.expired === over) return;
      state.expired = over;
      show();
    },
    say: (words) => problem.replaceChildren(...(words ? [el("p", {}, words)] : [])),
    stop: () => clearTimeout(state.timer),
    toApprove: () => (approve.disabled ? focusOn(requirements()[0]?.at ?? node) : approve.focus()),
    toDeny: () => (deny.disabled ? node : deny).focus(),
  };
}

function focusOn(node) {
  const own = node.matches("button, input, textarea, [tabindex]");
  (own ? node : node.querySelector("button, summary, textarea") ?? node).focus();
  node.scrollIntoView({ block: "center" });
}
