// The audit log, newest first, with its verification and export.

import { button, download, el, note } from "./dom.js";
import * as service from "./service.js";
import { shown } from "./shown_text.js";
import { Reading, valueNode } from "./value.js";
import { many, time } from "./words.js";

const PAGE = 100;

function line(entry) {
  const about = Object.keys(entry.about ?? {}).length
    ? el("details", {}, el("summary", {}, "details"), valueNode(entry.about, "", new Reading()),
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

function verdict(result) {
  if (result.ok) {
    const entries = many(result.entries, "entry", "entries");
    return note("good", `The chain is intact: ${entries}, none changed, none missing. `,
      result.anchor
        ? "Its end matches the anchor stored outside the database."
        : "There is no anchor outside the database to compare its end with.");
  }
  const where = result.broken_at === null ? "" : ` First broken at entry ${result.broken_at}.`;
  return note("problem", el("b", {}, "The chain is broken."), where, " ", shown(result.problem));
}

function exportButton() {
  const take = button("Export", async () => {
    take.disabled = true;
    const file = await service.file("/audit/export").finally(() => {
      take.disabled = false;
    });
    download(file, "journeyman-audit.jsonl");
  });
  return take;
}

export async function showAudit() {
  const list = el("ol", { class: "audit" });
  const answer = el("div", {});
  const older = button("Older", () => more(), { class: "more" });
  let before = null;

  async function more() {
    const entries = await service.audit({ limit: PAGE, ...(before === null ? {} : { before }) });
    list.append(...entries.map(line));
    before = entries.at(-1)?.seq ?? before;
    older.hidden = entries.length < PAGE;
  }

  const verify = button("Verify the chain", async () => {
    verify.disabled = true;
    const problem = (refusal) => note("problem", refusal.message);
    answer.replaceChildren(await service.verifyAudit().then(verdict, problem));
    verify.disabled = false;
  });
  await more();
  return {
    node: el("section", {}, el("h1", { tabindex: "-1" }, "Audit"),
      el("p", { class: "lead" },
        "Everything that happened. Each entry contains the digest of the previous one, which reveals changes."),
      el("div", { class: "tools" }, verify, exportButton()), answer, list, older),
    title: "Audit", keys: {},
  };
}
