// Talks to the service: JSON over this origin, one half of the session in the cookie, the other in a
// header. That other half is kept where only pages of this port can read it; the cookie goes to
// every port. What the service refuses arrives as `Refused`, with its words.

export class Refused extends Error {
  constructor(status, error) {
    super(error.message || `The service answered ${status} without saying why.`);
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

const KEPT = "journeyman.session";
let loggedOut = () => {};

function keep(found) {
  localStorage.setItem(KEPT, found.csrf);
  return found;
}

function token() {
  return localStorage.getItem(KEPT) ?? "";
}

// Heard whenever the service no longer knows whose browser this is.
export function whenLoggedOut(heard) {
  loggedOut = heard;
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
  const found = await answer.json().catch(() => ({}));
  if (answer.status === 401 && path !== "/login" && path !== "/links/open") loggedOut();
  if (!answer.ok) throw new Refused(answer.status, found.error ?? {});
  return found;
}

// The person's own clock may be wrong, so a deadline is what the service said was left, counted
// from the moment it said so.
export function received(card) {
  return { ...card, deadline: Date.now() + 1000 * card.expires_in_s };
}

const path = (id) => `/confirm/${encodeURIComponent(id)}`;

export const me = () => ask("GET", "/me");
export const logIn = async (name, key) => keep(await ask("POST", "/login", { name, key }));

export async function logOut() {
  await ask("POST", "/logout");
  localStorage.removeItem(KEPT);
}

// Whoever is logged in stays so: the link's own session is then left where it is.
export async function openLink(link, loggedIn) {
  const found = await ask("POST", "/links/open", { link }, loggedIn ? "omit" : "same-origin");
  return loggedIn ? found : keep(found);
}

// What goes on: an answer whose body is read as it comes.
export async function follow(path, signal) {
  const headers = { Accept: "text/event-stream", "X-CSRF-Token": token() };
  const answer = await fetch(path, { headers, signal, credentials: "same-origin", cache: "no-store" });
  if (answer.status === 401) loggedOut();
  if (!answer.ok) throw new Refused(answer.status, {});
  return answer.body.pipeThrough(new TextDecoderStream()).getReader();
}

// A file, which a plain link could not ask for: it would not send the header.
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

export async function cards(question = {}) {
  const found = await ask("GET", `/confirmations?${new URLSearchParams(question)}`);
  return found.confirmations.map(received);
}

export const whitelist = async () => (await ask("GET", "/whitelist")).whitelist;
export const addToWhitelist = (entry) => ask("POST", "/whitelist", entry);
export const revoke = (id) => ask("DELETE", `/whitelist/${encodeURIComponent(id)}`);
export const audit = async (question) =>
  (await ask("GET", `/audit?${new URLSearchParams(question)}`)).audit;
export const verifyAudit = () => ask("GET", "/audit/verify");
export const policy = () => ask("GET", "/policy");
export const stats = () => ask("GET", "/stats");
