// The table of what would run: one row per parameter, changes by an approver next to the requested
// value, and the exact JSON.

import { button, el } from "./dom.js";
import { exactJson, shown } from "./shown_text.js";
import { kindOf, valueNode } from "./value.js";

const same = (left, right) => JSON.stringify(left) === JSON.stringify(right);

function row(name, value, before, reading) {
  const added = !Object.hasOwn(before, name);
  const changed = added || !same(value, before[name]);
  const requested = () =>
    added ? "added; not requested" : ["requested: ", valueNode(before[name], name, reading)];
  return el("tr", { class: changed ? "changed" : undefined },
    el("th", { scope: "row" },
      el("span", { class: "name", dir: "ltr" }, name === "" ? "(no name)" : shown(name)),
      el("span", { class: "kind" }, kindOf(value))),
    el("td", {},
      valueNode(value, name, reading),
      changed ? el("div", { class: "before" }, requested()) : null));
}

function removedRow(name, value, reading) {
  return el("tr", { class: "changed" },
    el("th", { scope: "row" }, el("span", { class: "name" }, shown(name))),
    el("td", {},
      el("div", { class: "before" }, "removed; requested: ", valueNode(value, name, reading))));
}

export function table(values, reading, before = values) {
  const names = Object.keys(values);
  const dropped = Object.keys(before).filter((name) => !Object.hasOwn(values, name));
  if (!names.length && !dropped.length) return el("p", { class: "quiet" }, "No parameters.");
  return el("table", { class: "parameters" },
    el("colgroup", {}, el("col", { class: "names" }), el("col")),
    el("thead", { class: "unseen" },
      el("tr", {}, el("th", { scope: "col" }, "Parameter"), el("th", { scope: "col" }, "Value"))),
    el("tbody", {},
      names.map((name) => row(name, values[name], before, reading)),
      dropped.map((name) => removedRow(name, before[name], reading))));
}

export function raw(values) {
  const place = el("div", { class: "raw" });
  const text = el("pre", { class: "value json", dir: "ltr", tabindex: "0", "aria-label": "Exact JSON" });
  const toggle = button("Show exact JSON", () => {
    const opening = !text.isConnected;
    text.textContent = opening ? exactJson(values) : "";
    if (opening) place.append(text);
    else text.remove();
    toggle.textContent = opening ? "Hide exact JSON" : "Show exact JSON";
    toggle.setAttribute("aria-expanded", String(opening));
  }, { class: "small", "aria-expanded": "false" });
  place.append(toggle, el("span", { class: "hint" },
    "Every value in full, unusual characters as JSON escapes."));
  return place;
}
