// The page: the logged-in person, the view selected by the address, and changes from the service for
// the open view.

import { showAudit } from "./audit.js";
import { showCard } from "./card.js";
import { button, el, note } from "./dom.js";
import { showHistory } from "./history.js";
import { showInbox } from "./inbox.js";
import { helpDialog, listen } from "./keys.js";
import { Live } from "./live.js";
import { showLogin } from "./login.js";
import { showPolicy } from "./policy.js";
import * as service from "./service.js";
import { showWhitelist } from "./whitelist.js";

const VIEWS = {
  inbox: { words: "Inbox", show: showInbox },
  history: { words: "History", show: showHistory },
  whitelist: { words: "Whitelist", show: showWhitelist },
  audit: { words: "Audit", show: showAudit },
  policy: { words: "Policy", show: showPolicy },
};
const main = document.getElementById("main");
const head = document.getElementById("top");
const dialog = helpDialog();
const pending = new Set();
const state = { me: null, view: null, turn: 0, connection: "connecting", followed: "" };
const live = new Live({ changed, state: connection, again });

const go = (hash) => (location.hash === hash ? route() : (location.hash = hash));

const context = {
  get me() { return state.me; },
  go,
  logIn: () => logIn(),
  counted: () => updateTitle(),
};

function changed(card) {
  if (card.status === "pending") pending.add(card.id);
  else pending.delete(card.id);
  state.view?.take?.(card);
  updateTitle();
  // The stream of a single confirmation ends when it is settled.
}

async function again() {
  await count().then(() => state.view?.again?.()).catch(() => connection("reconnecting"));
}

async function count() {
  pending.clear();
  for (const card of await service.waiting()) pending.add(card.id);
  updateTitle();
}

function connection(name) {
  state.connection = name;
  const dot = head.querySelector(".connection");
  if (!dot) return;
  dot.className = `connection ${name}`;
  dot.querySelector("span").textContent = name;
  // A refused stream looks like a broken one; requesting the account tells them apart.
  if (name === "reconnecting") service.me().catch(() => null);
}

function updateTitle() {
  const count = pending.size ? `(${pending.size}) ` : "";
  document.title = `${count}${state.view?.title ?? "Confirmations"} · Journeyman`;
  const badge = head.querySelector(".count");
  if (badge) badge.textContent = pending.size ? String(pending.size) : "";
}

function drawHead(name) {
  const link = ([key, { words }]) =>
    el("a", { href: `#/${key}`, "aria-current": key === name ? "page" : undefined }, words,
      key === "inbox" ? el("span", { class: "count" }) : null);
  const mark = el("span", { class: "mark", "aria-hidden": "true" });
  const brand = el("a", { class: "brand", href: "#/inbox" }, mark, "Journeyman");
  if (!state.me) return head.replaceChildren(brand);
  head.replaceChildren(brand,
    el("nav", { "aria-label": "Views" }, Object.entries(VIEWS).map(link)),
    el("div", { class: "who-here" },
      el("span", { class: `connection ${state.connection}`, role: "status" },
        el("span", {}, state.connection)),
      el("span", { class: "me" }, state.me.name),
      button("?", () => dialog.showModal(), { class: "small round", "aria-label": "Keyboard" }),
      button("Log out", leave, { class: "small" })));
  updateTitle();
}

async function leave() {
  await service.logOut().catch(() => null);
  logIn("You are logged out.");
}

function put(view, name = "") {
  state.view?.stop?.();
  state.view = view;
  main.replaceChildren(view.node);
  main.dataset.view = name;
  updateTitle();
  (view.start ?? (() => main.querySelector("h1")?.focus({ preventScroll: true })))();
}

// The address is kept, so that the same view opens after the login.
function logIn(message = "") {
  live.close();
  state.followed = "";
  state.me = null;
  state.turn += 1;
  pending.clear();
  drawHead("");
  put(showLogin(async () => {
    state.me = await service.me();
    await route();
  }, message));
}

function follow() {
  if (state.followed) return;
  state.followed = "/inbox/events";
  live.open(state.followed);
}

async function route() {
  if (!state.me) return undefined;
  const turn = (state.turn += 1);
  const [name, id] = location.hash.replace(/^#\//, "").split("?")[0].split("/").map(decodeURIComponent);
  const question = new URLSearchParams(location.hash.split("?")[1] ?? "");
  if (name !== "card" && !VIEWS[name]) return go("#/inbox");
  drawHead(name);
  try {
    const view = await (name === "card" ? showCard : VIEWS[name].show)(context, id, question);
    if (turn !== state.turn) return view.stop?.();
    put(view, name);
    window.scrollTo(0, 0);
    follow();
    if (!pending.size) await count();
  } catch (refusal) {
    if (turn !== state.turn) return;
    put(showProblem(refusal));
  }
}

function showProblem(refusal) {
  const words = refusal.status === 404 ? "Not found" : "Something went wrong";
  const ways = [button("Try again", route), " ", el("a", { href: "#/inbox", class: "button" }, "Inbox")];
  const node = el("section", {}, el("h1", { tabindex: "-1" }, words),
    note("problem", refusal.message), el("p", {}, ways));
  return { node, title: "Problem", keys: {} };
}

// The token is in the fragment, which mail scanners and previews never send to a server.
async function openFromLink() {
  const link = location.hash.slice(1);
  history.replaceState(null, "", "/");
  const here = await service.me().catch(() => null);
  const loggedIn = here !== null;
  try {
    await service.openLink(link, loggedIn);
  } catch (refusal) {
    if (!loggedIn) return logIn(refusal.message);
  }
  return arrive();
}

async function arrive() {
  try {
    state.me = await service.me();
  } catch (refusal) {
    if (refusal.status === 401 || refusal.status === 403) return logIn();
    main.replaceChildren(note("problem", refusal.message), button("Try again", arrive));
    return undefined;
  }
  return route();
}

service.whenLoggedOut(() => state.me && logIn("Your session has ended. Log in again."));
document.body.append(dialog);
listen(() => state.view, dialog);
window.addEventListener("hashchange", () => location.hash !== "#main" && route());
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible" && state.me) again();
});
setInterval(() => state.view?.tick?.(), 1000);
if (location.pathname === "/open") openFromLink();
else arrive();
