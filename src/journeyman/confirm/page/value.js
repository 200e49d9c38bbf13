// Shows a parameter's value so that every byte can be seen: long values are folded and state how much
// is folded, secrets are covered until opened. `Reading` tracks what has not been opened yet.

import { button, el } from "./dom.js";
import { shown } from "./shown_text.js";
import { many } from "./words.js";

const FOLD_AT = { characters: 600, lines: 14 };
const SECRET_WORD = /pass(wd|word|code|phrase)|secret|token|credential|authori[sz]ation|cookie|bearer/i;
// Short words match only as whole words: `key` and `api_key`, not `monkey`.
const SECRET_PART = /(^|[^a-z])(key|pwd|pass|pin|otp|auth)($|[^a-z])|[a-z](Key|Pwd|Pin|Otp)$/;

const PATCH = /^\*\*\* Begin Patch$|^@@ .* @@/m;
const TONES = { "-": "removed", "+": "added" };

export class Reading {
  constructor(changed = () => {}) {
    this.closed = new Set();
    this.changed = changed;
  }

  closes(node) {
    this.closed.add(node);
  }

  opened(node) {
    if (this.closed.delete(node)) this.changed();
  }
}

export const secretName = (name) =>
  SECRET_WORD.test(name) || SECRET_PART.test(name) || SECRET_PART.test(name.toLowerCase());

export function kindOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
  return { string: "text", number: "number", boolean: "yes or no", object: "group" }[typeof value];
}

// The value as pieces of text, with secrets marked. A string is shown as it is, everything else as
// indented JSON.
function pieces(value, name) {
  const result = [];
  const secret = secretName(name);
  if (typeof value === "string" && PATCH.test(value) && !secret) return marked(value.split("\n"));
  if (typeof value === "string") result.push({ text: value, secret });
  else write(value, "", secret, result);
  return result.filter((piece) => piece.text !== "");
}

// Lines that begin with a sign, as pieces of text.
function marked(lines) {
  return lines.map((line, at) => {
    const text = at < lines.length - 1 ? `${line}\n` : line;
    return { text, tone: /^(---|\+\+\+) /.test(line) ? undefined : TONES[line[0]] };
  });
}

// The lines that two texts begin and end with stay; those between were replaced.
function diff(before, after) {
  const [old, now] = [before, after].map((text) => text?.split("\n") ?? []);
  const most = Math.min(old.length, now.length);
  let start = 0;
  let end = 0;
  while (start < most && old[start] === now[start]) start += 1;
  while (end < most - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const signed = (sign, lines, from, to) => lines.slice(from, to).map((line) => sign + line);
  return [
    ...signed(" ", now, 0, start), ...signed("-", old, start, old.length - end),
    ...signed("+", now, start, now.length - end), ...signed(" ", now, now.length - end, now.length),
  ];
}

export function diffNode(before, after, reading) {
  return piecesNode(marked(diff(before, after)), "diff", reading);
}

function write(value, indent, secret, into) {
  const add = (text, covered = false) => into.push({ text, secret: covered });
  if (value === null || typeof value !== "object") {
    add(JSON.stringify(value), secret && value !== null && typeof value !== "boolean");
    return;
  }
  const list = Array.isArray(value);
  const inside = list ? value.map((item) => ["", item]) : Object.entries(value);
  if (!inside.length) {
    add(list ? "[]" : "{}");
    return;
  }
  add(list ? "[" : "{");
  inside.forEach(([key, item], at) => {
    add(`${at ? "," : ""}\n${indent}  ${list ? "" : `${JSON.stringify(key)}: `}`);
    write(item, `${indent}  `, secret || (!list && secretName(key)), into);
  });
  add(`\n${indent}${list ? "]" : "}"}`);
}

function cutAt(text, room) {
  let end = Math.min(text.length, room.characters);
  for (let at = text.indexOf("\n"); at !== -1 && at < end; at = text.indexOf("\n", at + 1)) {
    room.lines -= 1;
    if (room.lines <= 0) end = at;
  }
  // Never split a surrogate pair.
  if (end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1] ?? "")) end -= 1;
  room.characters -= end;
  return end;
}

function halves(all) {
  const room = { ...FOLD_AT };
  const before = [];
  const after = [];
  for (const piece of all) {
    const end = after.length || room.characters <= 0 || room.lines <= 0 ? 0 : cutAt(piece.text, room);
    if (end > 0) before.push({ ...piece, text: piece.text.slice(0, end) });
    if (end < piece.text.length) after.push({ ...piece, text: piece.text.slice(end) });
  }
  return [before, after];
}

function uncovered(piece) {
  return el("span", { class: piece.tone }, shown(piece.text, { lines: true }));
}

function covered(piece, reading) {
  const place = el("span", { class: "covered" });
  const show = button("show", () => {
    place.replaceWith(uncovered(piece));
    reading.opened(place);
  }, { class: "small", "aria-label": "Show the secret value" });
  const size = many(piece.text.length, "character");
  place.append(el("span", { class: "dots" }, "••••••••"), ` ${size} `, show);
  reading.closes(place);
  return place;
}

function written(all, reading) {
  return all.map((piece) => (piece.secret ? covered(piece, reading) : uncovered(piece)));
}

export function valueNode(value, name, reading) {
  if (value === "") return el("span", { class: "quiet" }, "(empty text)");
  return piecesNode(pieces(value, name), typeof value === "string" ? "" : "json", reading);
}

function piecesNode(all, kind, reading) {
  const place = el("pre", { class: `value ${kind}`, dir: "ltr" });
  // A covered value is not folded: it shows nothing yet.
  const [before, after] = all.length === 1 && all[0].secret ? [all, []] : halves(all);
  place.append(...written(before, reading));
  if (after.length) {
    const more = after.reduce((sum, piece) => sum + piece.text.length, 0);
    const open = button(`${many(more, "more character")} · show all`, () => {
      open.replaceWith(...written(after, reading));
      reading.opened(open);
    }, { class: "fold" });
    reading.closes(open);
    place.append(open);
  }
  return place;
}
