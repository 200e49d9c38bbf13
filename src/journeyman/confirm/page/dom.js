// Creates elements. Text is inserted as text nodes only, so that nothing from an agent can become
// markup; links lead only to this page and this service.

const OWN_LINK = /^(#\/|\/(?!\/)|#main$)/;

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else if (name === "href" && !OWN_LINK.test(value)) {
      throw new Error("Links must stay within this page.");
    } else if (name === "value") {
      node.value = value;
    } else if (/^(on|style$|src)/.test(name)) {
      throw new Error(`The attribute ${name} must not be set here.`);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

// Downloads a file. This is the only link that leaves the page, and only to data that the page holds.
export function download(file, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

export function button(label, press, attributes = {}) {
  return el("button", { type: "button", ...attributes, on: { click: press } }, label);
}

export function note(kind, ...children) {
  const urgent = kind === "problem" || kind === "warning";
  return el("div", { class: `note ${kind}`, role: urgent ? "alert" : "status" }, ...children);
}

export function field(label, input, hint = "") {
  const id = input.id || `field-${field.next++}`;
  input.id = id;
  const help = hint ? el("span", { class: "hint", id: `${id}-hint` }, hint) : null;
  if (help) input.setAttribute("aria-describedby", help.id);
  return el("div", { class: "field" }, el("label", { for: id }, label), input, help);
}
field.next = 1;

export function say(words) {
  document.getElementById("news").textContent = words;
}
