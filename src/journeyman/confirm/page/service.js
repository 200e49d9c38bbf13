// Calls the service: JSON over this origin, one half of the session secret in the cookie, the other
// in a header. The second half is stored where only pages of this port can read it, because the
// cookie is sent to every port. A refusal arrives as `Refused`, with the message of the service.

export class Refused extends Error {
  constructor(status, error) {
    super(error.message || `The service answered ${status} without a reason.`);
    this.status = status;
    this.code = error.code || "";
    this.about = error;
  }
}

export class Unreachable extends Error {
  constructor() {
    super("The service did not answer. Check that it is running; this page keeps trying.");
  }
}

const STORAGE_KEY = "journeyman.session";
const MOST_CARDS = 500;
let loggedOut = () => {};

function store(session) {
  localStorage.setItem(STORAGE_KEY, session.csrf);
  return session;
}

function token() {
  return localStorage.getItem(STORAGE_KEY) ?? "";
}

// Called when the service no longer accepts the session.
export function whenLoggedOut(handler) {
  loggedOut = handler;
}

async function ask(method, path, body, credentials = "same-origin") {
  const headers = { Accept: "application/json" };
  if (token()) headers["X-CSRF-Token"] = token();
  if (method !== "GET") headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      credentials,
      cache: "no-store",
      redirect: "error",
      body: method === "GET" ? undefined : JSON.stringify(body ?? {}),
    });
  } catch {
    throw new Unreachable();
  }
  const content = await answer.json().catch(() => ({}));
  if (answer.status === 401 && path !== "/login" && path !== "/links/open") loggedOut();
  if (!answer.ok) throw new Refused(answer.status, content.error ?? {});
  return content;
}

// The local clock may be wrong, so the deadline is computed from the remaining time that the service
// reports.
export function received(card) {
  return { ...card, deadline: Date.now() + 1000 * card.expires_in_s };
}

const path = (id) => `/confirm/${encodeURIComponent(id)}`;

export const me = () => ask("GET", "/me");
export const logIn = async (name, key) => store(await ask("POST", "/login", { name, key }));

export async function logOut() {
  await ask("POST", "/logout");
  localStorage.removeItem(STORAGE_KEY);
}

// A person who is logged in stays logged in; the session of the link is then not used.
export async function openLink(link, loggedIn) {
  const session = await ask("POST", "/links/open", { link }, loggedIn ? "omit" : "same-origin");
  return loggedIn ? session : store(session);
}

// An event stream: a response that is read as it arrives.
export async function follow(path, signal) {
  const headers = { Accept: "text/event-stream", "X-CSRF-Token": token() };
  const answer = await fetch(path, { headers, signal, credentials: "same-origin", cache: "no-store" });
  if (answer.status === 401) loggedOut();
  if (!answer.ok) throw new Refused(answer.status, {});
  return answer.body.pipeThrough(new TextDecoderStream()).getReader();
}

// A file. A plain link could not request it, because it would not send the header.
export async function file(path) {
  const answer = await fetch(path, {
    headers: { "X-CSRF-Token": token() },
    credentials: "same-origin",
    cache: "no-store",
  });
  if (!answer.ok) throw new Refused(answer.status, {});
  return answer.blob();
}

export const card = async (id) => received(await ask("GET", path(id)));
export const approve = async (id, ballot) => received(await ask("POST", `${path(id)}/approve`, ballot));
export const deny = async (id, ballot) => received(await ask("POST", `${path(id)}/deny`, ballot));

export async function cards(query = {}) {
  const page = await ask("GET", `/confirmations?${new URLSearchParams(query)}`);
  return page.confirmations.map(received);
}

// All that waits, oldest first, however much it is.
export async function waiting() {
  const all = [];
  let page;
  do {
    const before = all.length ? { before: all.at(-1).id } : {};
    page = await cards({ status: "pending", limit: MOST_CARDS, ...before });
    all.push(...page);
  } while (page.length === MOST_CARDS);
  return all.reverse();
}

export const whitelist = async () => (await ask("GET", "/whitelist")).whitelist;
export const addToWhitelist = (entry) => ask("POST", "/whitelist", entry);
export const revoke = (id) => ask("DELETE", `/whitelist/${encodeURIComponent(id)}`);
export const audit = async (query) =>
  (await ask("GET", `/audit?${new URLSearchParams(query)}`)).audit;
export const verifyAudit = () => ask("GET", "/audit/verify");
export const policy = () => ask("GET", "/policy");
