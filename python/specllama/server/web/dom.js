// Makes and finds elements.

/** @param {string} id */
export const at = id => document.getElementById(id);

/**
 * Make an element. Properties with a dash, and `role`, become attributes.
 * @param {string} tag
 * @param {Object<string, any>} [properties]
 * @param {...(Node|string)} children
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties))
    if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  element.append(...children);
  return element;
}

/** Outlines of icons, in a square of 24 × 24. */
const ICONS = {
  again: "M20 11a8 8 0 1 0-2.3 6.3M20 5v6h-6",
  attach: "M20 11.5l-8.2 8.2a5 5 0 0 1-7.1-7.1l8.6-8.6a3.3 3.3 0 0 1 4.7 4.7l-8.6 8.6"
    + "a1.7 1.7 0 0 1-2.4-2.4l7.8-7.8",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  delete: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  done: "M5 12.5l4.5 4.5L19 7.5",
  edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  go: "M5 4l7 8-7 8M13 4l7 8-7 8",
  next: "M9 5l7 7-7 7",
  previous: "M15 5l-7 7 7 7",
  trace: "M4 20V10M10 20V4M16 20v-8M22 20H2",
};

/** @param {keyof ICONS} name */
export function icon(name) {
  const SVG = "http://www.w3.org/2000/svg";
  const image = document.createElementNS(SVG, "svg");
  image.setAttribute("viewBox", "0 0 24 24");
  image.setAttribute("aria-hidden", "true");
  image.classList.add("icon");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  image.append(path);
  return image;
}

/**
 * Make a button with an icon and a tooltip. Its class is the first word of the name.
 * @param {string} name
 * @param {keyof ICONS} image
 * @param {(button: HTMLButtonElement) => void} action
 */
export function iconButton(name, image, action) {
  const button = make("button", {type: "button", 
    className: `icon-button ${name.toLowerCase().split(" ")[0]}`, title: name,
    "aria-label": name}, icon(image));
  button.addEventListener("click", () => action(button));
  return button;
}

/**
 * Copy a text to the clipboard, and show on the button whether that worked. Browsers allow it only
 * for pages from this machine or over HTTPS.
 * @param {string} text
 * @param {HTMLButtonElement} button
 */
export async function copy(text, button) {
  const before = [...button.childNodes];
  const name = button.title;
  try {
    await navigator.clipboard.writeText(text);
    button.replaceChildren(icon("done"));
    button.title = "Copied";
  } catch {
    button.replaceChildren(icon("close"));
    button.title = "The browser does not allow copying";
  }
  announce(button.title);
  setTimeout(() => {
    button.replaceChildren(...before);
    button.title = name;
  }, 2000);
}

/** Announce a text to screen readers. @param {string} text */
export function announce(text) {
  at("status").textContent = text;
}

/**
 * Offer a text as a file.
 * @param {string} name
 * @param {string} text
 * @param {string} type
 */
export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], {type}));
  make("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
