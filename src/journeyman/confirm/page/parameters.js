// The table of what would run: one row per parameter, changes by an approver next to the requested
// value, and the exact JSON. A call that the gate of a host holds is shown by its arguments, and an
// edit as a diff.

import { button, el } from "./dom.js";
import { exactJson, shown } from "./shown_text.js";
import { diffNode, kindOf, valueNode } from "./value.js";

// What agents' tools call a text that is replaced, and the one that takes its place.
const OLD_TEXT = ["old_string", "oldString"];
const NEW_TEXT = ["new_string", "newString", "new_source", "content"];

const same = (left, right) => JSON.stringify(left) === JSON.stringify(right);

const isGroup = (value) => kindOf(value) === "group";

function content(name, value, before, reading, inCall) {
  if (name === "arguments" && isGroup(value) && isGroup(before ?? value)) {
    return table(value, reading, before, true);
  }
  if (inCall && name === "edits" && Array.isArray(value) && value.every(isGroup)) {
    return value.map((edit) => table(edit, reading, edit, true));
  }
  return valueNode(value, name, reading);
}

function editRow(values, [before, after], reading) {
  return el("tr", {},
    el("th", { scope: "row" }, el("span", { class: "name" }, before ? "change" : shown(after)),
      el("span", { class: "kind" }, before ? "- before, + after" : "+ new text")),
    el("td", {}, diffNode(before ? values[before] : null, values[after], reading)));
}

function row(name, value, before, reading, inCall) {
  const added = !Object.hasOwn(before, name);
  const changed = added || !same(value, before[name]);
  const requested = () =>
    added ? "added; not requested" : ["requested: ", valueNode(before[name], name, reading)];
  return el("tr", { class: changed ? "changed" : undefined },
    el("th", { scope: "row" },
      el("span", { class: "name", dir: "ltr" }, name === "" ? "(no name)" : shown(name)),
      el("span", { class: "kind" }, kindOf(value))),
    el("td", {},
      content(name, value, before[name], reading, inCall),
      changed ? el("div", { class: "before" }, requested()) : null));
}

function removedRow(name, value, reading) {
  return el("tr", { class: "changed" },
    el("th", { scope: "row" }, el("span", { class: "name" }, shown(name))),
    el("td", {},
      el("div", { class: "before" }, "removed; requested: ", valueNode(value, name, reading))));
}

// `inCall` marks the arguments of a tool.
export function table(values, reading, before = values, inCall = false) {
  const find = (known) => known.find((name) => typeof values[name] === "string");
  const after = inCall && same(values, before) ? find(NEW_TEXT) : undefined;
  const edit = after ? [find(OLD_TEXT), after] : [];
  const names = Object.keys(values).filter((name) => !edit.includes(name));
  const dropped = Object.keys(before).filter((name) => !Object.hasOwn(values, name));
  if (!names.length && !dropped.length && !after) return el("p", { class: "quiet" }, "No parameters.");
  return el("table", { class: "parameters" },
    el("colgroup", {}, el("col", { class: "names" }), el("col")),
    el("thead", { class: "unseen" },
      el("tr", {}, el("th", { scope: "col" }, "Parameter"), el("th", { scope: "col" }, "Value"))),
    el("tbody", {},
      names.map((name) => row(name, values[name], before, reading, inCall)),
      after ? editRow(values, edit, reading) : null,
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
