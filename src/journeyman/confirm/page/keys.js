// Keyboard shortcuts: move in a list, open, and reach the decision. No shortcut decides; it only
// moves the focus to the button.

import { button, el } from "./dom.js";

const HELP = [
  ["j  ↓", "next in the list"], ["k  ↑", "previous in the list"], ["Enter", "open the confirmation (never approves)"],
  ["a", "go to Approve, or to what is still missing"], ["d", "go to Deny"],
  ["Space", "press the focused button"], ["u  Esc", "back to the inbox"], ["?", "this help"],
];

const typing = (node) => node.closest?.("input, textarea, select, [contenteditable]");

const caps = (keys) => keys.split("  ").map((key) => el("kbd", {}, key));

export function helpDialog() {
  const dialog = el("dialog", { class: "help", "aria-label": "Keyboard" }, el("h2", {}, "Keyboard"),
    el("dl", {}, HELP.map(([keys, words]) => el("div", {}, el("dt", {}, caps(keys)), el("dd", {}, words)))),
    button("Close", () => dialog.close()));
  return dialog;
}

function move(items, step) {
  const at = items.indexOf(document.activeElement);
  const next = at === -1 ? (step > 0 ? 0 : items.length - 1) : at + step;
  items[Math.max(0, Math.min(items.length - 1, next))]?.focus();
}

export function listen(current, dialog) {
  const steps = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const view = current();
    const items = view?.items?.() ?? [];
    if (event.key === "?") dialog.showModal();
    else if (steps[event.key] && items.length) move(items, steps[event.key]);
    else if (view?.keys?.[event.key] && !event.repeat) view.keys[event.key]();
    else return;
    event.preventDefault();
  });
}
