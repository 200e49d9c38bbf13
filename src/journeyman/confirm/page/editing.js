// The form for approving with changed parameters. Text without hidden characters is edited as text,
// everything else as JSON, so that no change goes unnoticed.

import { el, field } from "./dom.js";
import { exactJson, hiddenIn, shown } from "./shown_text.js";
import { kindOf } from "./value.js";

const plain = (value) => typeof value === "string" && hiddenIn(value) === 0;

function parameterField(name, value, changed) {
  const asText = plain(value);
  const start = asText ? value : exactJson(value);
  const input = el("textarea", {
    rows: Math.min(8, start.split("\n").length), spellcheck: "false", autocomplete: "off",
    value: start, dir: "ltr", on: { input: changed },
  });
  const label = el("span", { class: "name" }, shown(name));
  return {
    name,
    node: field(label, input, asText ? "text" : `${kindOf(value)}, as JSON`),
    touched: () => input.value !== start,
    read: () => (asText ? input.value : JSON.parse(input.value)),
    mark: (wrong) => input.setAttribute("aria-invalid", String(wrong)),
  };
}

export function editor(details, editable, changed) {
  const names = Object.keys(details).filter((name) => editable === true || editable.includes(name));
  const parts = names.map((name) => parameterField(name, details[name], changed));
  const node = el("details", { class: "editor" },
    el("summary", {}, "Approve with changes"),
    el("p", { class: "hint" },
      "The agent gets exactly what you write here, or nothing. The original request stays on record."),
    parts.map((part) => part.node));

  // The changed parameters, or null without changes; `problem` says what cannot be parsed.
  function read() {
    const edited = new Map(Object.entries(details));
    let any = false;
    for (const part of parts) {
      part.mark(false);
      if (!part.touched()) continue;
      any = true;
      try {
        edited.set(part.name, part.read());
      } catch {
        part.mark(true);
        return { edited: null, problem: `Fix the JSON of ${part.name}` };
      }
    }
    return { edited: any ? Object.fromEntries(edited) : null, problem: "" };
  }
  return { node, read };
}
