// The record of everything that happened, newest first; checking its chain; taking it along.

import { button, el, note, saved } from "./dom.js";
import * as service from "./service.js";
import { shown } from "./shown_text.js";
import { Reading, valueNode } from "./value.js";
import { many, time } from "./words.js";

const PAGE = 100;

function line(entry) {
  const about = Object.keys(entry.about ?? {}).length
    ? el("details", {}, el("summary", {}, "about"), valueNode(entry.about, "", new Reading()),
      el("code", { class: "digest" }, entry.digest))
    : null;
  const card = entry.confirmation
    ? el("a", { href: `#/card/${entry.confirmation}` }, entry.confirmation.slice(0, 8))
    : el("span", { class: "no-card" });
  return el("li", { class: "audit-line" },
    el("span", { class: "seq" }, String(entry.seq)), el("span", { class: "when" }, time(entry.at)),
    el("span", { class: `what kind-${entry.kind}` }, entry.kind.replaceAll("_", " ")),
    el("span", { class: "who" }, shown(entry.actor || "the service")), card, about);
}

function verdict(found) {
  if (found.ok) {
    const entries = many(found.entries, "entry", "entries");
    return note("good", `The chain holds: ${entries}, none changed, none missing. `,
      found.anchor
        ? "Its end agrees with the anchor kept outside the table."
        : "There is no anchor outside the table to hold its end against.");
  }
  const where = found.broken_at === null ? "" : ` First broken at entry ${found.broken_at}.`;
  return note("problem", el("b", {}, "The chain is broken."), where, " ", shown(found.problem));
}

function exporting(format) {
  const take = button(`Export ${format.toUpperCase()}`, async () => {
    take.disabled = true;
    const file = await service.file(`/audit/export?format=${format}`).finally(() => {
      take.disabled = false;
    });
    saved(file, `journeyman-audit.${format}`);
  });
  return take;
}

export async function showAudit() {
  const list = el("ol", { class: "audit" });
  const answer = el("div", {});
  const older = button("Older", () => more(), { class: "more" });
  let before = null;

  async function more() {
    const found = await service.audit({ limit: PAGE, ...(before === null ? {} : { before }) });
    list.append(...found.map(line));
    before = found.at(-1)?.seq ?? before;
    older.hidden = found.length < PAGE;
  }

  const verify = button("Check the chain", async () => {
    verify.disabled = true;
    const problem = (refusal) => note("problem", refusal.message);
    answer.replaceChildren(await service.verifyAudit().then(verdict, problem));
    verify.disabled = false;
  });
  await more();
  return {
    node: el("section", {}, el("h1", { tabindex: "-1" }, "Audit"),
      el("p", { class: "lead" },
        "Everything that happened. Each entry carries the digest of the one before, so a change shows."),
      el("div", { class: "tools" }, verify, exporting("jsonl"), exporting("csv")), answer, list, older),
    title: "Audit", keys: {},
  };
}
