// The login. It is a real form, so that a password manager can fill it, and the only form on the
// page.

import { el, field, note } from "./dom.js";
import * as service from "./service.js";

export function showLogin(done, message = "") {
  const name = el("input", {
    name: "name", type: "text", autocomplete: "username", autocapitalize: "off", spellcheck: "false",
    required: true,
  });
  const key = el("input", {
    name: "key", type: "password", autocomplete: "current-password", required: true,
  });
  const answer = el("div", {}, message ? note("plain", message) : "");
  const enter = el("button", { type: "submit", class: "primary" }, "Log in");

  async function send(event) {
    event.preventDefault();
    enter.disabled = true;
    try {
      await service.logIn(name.value.trim(), key.value.trim());
      key.value = "";
      await done();
    } catch (refusal) {
      const words = refusal.status === 401 ? "This name and key do not match." : refusal.message;
      answer.replaceChildren(note("problem", words));
      key.focus();
    } finally {
      enter.disabled = false;
    }
  }

  const node = el("section", { class: "login" },
    el("h1", {}, "Log in"),
    el("p", { class: "quiet" }, "Agents ask here before they do something risky. You decide."),
    el("form", { on: { submit: send } }, answer, field("Name", name),
      field("Key", key, "Printed at the first start of the service, or when your account was created."), enter));
  return { node, title: "Log in", start: () => name.focus(), keys: {} };
}
