// Makes elements. Text goes in as text nodes only, so nothing that an agent wrote can become markup;
// links lead nowhere but into this page and this service.

const OWN_LINK = /^(#\/|\/(?!\/)|#main$)/;

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, heard] of Object.entries(value)) node.addEventListener(event, heard);
    } else if (name === "href" && !OWN_LINK.test(value)) {
      throw new Error("A link of this page stays in this page.");
    } else if (name === "value") {
      node.value = value;
    } else if (/^(on|style$|src)/.test(name)) {
      throw new Error(`The attribute ${name} is not written from here.`);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

// Puts a file among the person's downloads. The one link that leads out of the page, and only to
// what the page itself holds.
export function saved(file, name) {
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
  const told = hint ? el("span", { class: "hint", id: `${id}-hint` }, hint) : null;
  if (told) input.setAttribute("aria-describedby", told.id);
  return el("div", { class: "field" }, el("label", { for: id }, label), input, told);
}
field.next = 1;

export function say(words) {
  document.getElementById("news").textContent = words;
}
