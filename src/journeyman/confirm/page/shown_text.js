// Shows text exactly: characters that are invisible, or change how the rest is read, become visible
// escapes like \u{202e}. Letters of every script stay as they are.

// Control, format, separator, private, surrogate and unassigned characters; characters that fonts may
// ignore; every blank other than the ordinary space; three signs without a visible shape.
const HIDDEN = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\u{16fe4}\u{1d159}]/gu;
// In text that looks like an escape the backslash is escaped, so that every visible escape is real.
const ESCAPED = new RegExp(`\\\\(?=u\\{)|${HIDDEN.source}`, "gu");

const NAMES = {
  0x0: "null", 0x7: "bell", 0x8: "backspace", 0x9: "tab", 0xa: "line break",
  0xd: "carriage return", 0x1b: "escape (starts terminal commands)", 0x7f: "delete",
  0x5c: "a backslash: the text itself contains this",
  0xa0: "no-break space", 0xad: "soft hyphen", 0x200b: "zero-width space",
  0x200c: "zero-width non-joiner", 0x200d: "zero-width joiner", 0x200e: "left-to-right mark",
  0x200f: "right-to-left mark", 0x2028: "line separator", 0x2029: "paragraph separator",
  0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding",
  0x202c: "end of direction", 0x202d: "left-to-right override",
  0x202e: "right-to-left override: reverses the text after it", 0x2060: "word joiner",
  0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate",
  0x2068: "first-strong isolate", 0x2069: "end of isolate", 0x2800: "blank braille pattern",
  0x3000: "wide space", 0x3164: "blank Hangul letter", 0xfeff: "byte order mark",
};

function escaped(character) {
  return `\\u{${character.codePointAt(0).toString(16)}}`;
}

// Splits text into plain runs and hidden characters. With `lines`, line breaks and tabs are plain.
export function runs(text, { lines = false } = {}) {
  const result = [];
  let from = 0;
  for (const match of text.matchAll(ESCAPED)) {
    if (lines && (match[0] === "\n" || match[0] === "\t")) continue;
    if (match.index > from) result.push({ text: text.slice(from, match.index), hidden: false });
    result.push({ text: match[0], hidden: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) result.push({ text: text.slice(from), hidden: false });
  return result;
}

export function shown(text, options) {
  const all = document.createDocumentFragment();
  for (const run of runs(String(text), options)) {
    if (!run.hidden) {
      all.append(run.text);
      continue;
    }
    const mark = document.createElement("span");
    mark.className = "escape";
    mark.title = NAMES[run.text.codePointAt(0)] ?? "an invisible character";
    mark.textContent = escaped(run.text);
    all.append(mark);
  }
  return all;
}

// The same as a plain string, for places that take no elements.
export function visible(text) {
  return runs(String(text)).map((run) => (run.hidden ? escaped(run.text) : run.text)).join("");
}

export function hiddenIn(value, lines = true) {
  if (typeof value === "string") {
    return runs(value, { lines }).filter((run) => run.hidden && run.text !== "\\").length;
  }
  if (value === null || typeof value !== "object") return 0;
  const inside = Array.isArray(value) ? value.map((item) => [item]) : Object.entries(value);
  return inside.flat().reduce((sum, item) => sum + hiddenIn(item, lines), 0);
}

// Equivalent JSON that can be copied: invisible characters are written as JSON escapes.
export function exactJson(value) {
  return JSON.stringify(value, null, 2).replace(HIDDEN, (hidden) =>
    hidden === "\n"
      ? hidden
      : [...Array(hidden.length).keys()]
          .map((at) => `\\u${hidden.charCodeAt(at).toString(16).padStart(4, "0")}`)
          .join(""),
  );
}
