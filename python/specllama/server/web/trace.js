// The picture of a trace, as drawn by the server, made usable without a mouse.

import {make} from "./dom.js";

// The server escapes every text in a trace, but one may also come from an imported file.
const CLEAN = {
  ALLOWED_TAGS: ["del", "div", "p", "path", "span", "strong", "svg"],
  ALLOWED_ATTR: ["aria-label", "class", "d", "height", "role", "title", "width"],
  RETURN_DOM_FRAGMENT: true,
};

/** The styles in a trace; here those of trace.css do. */
const STYLES = /<style>.*?<\/style>/gs;

/**
 * Return an element that shows a trace. Below it is what hovering over a token would show, for the
 * token that was tapped or reached by the arrow keys.
 * @param {string} html
 */
export function picture(html) {
  const told = make("output", {},
    "Tap a token, or go to it with the arrow keys, to see where it came from.");
  const box = make("div", {className: "picture"},
    globalThis.DOMPurify.sanitize(html.replace(STYLES, ""), CLEAN), told);
  const tokens = [...box.querySelectorAll(".round [title]")];
  let current = -1;
  const go = index => {
    if (!tokens[index]) return;
    tokens[current]?.removeAttribute("data-current");
    current = index;
    tokens[current].dataset.current = "";
    tokens[current].scrollIntoView({block: "nearest"});
    told.textContent = tokens[current].title;
    told.scrollIntoView({block: "nearest"});
  };
  const text = box.querySelector(".text");
  if (text === null) return box;  // of a damaged file
  const strip = box.querySelector(".strip");
  if (strip) strip.tabIndex = 0;  // so that keys scroll it
  text.tabIndex = 0;
  text.setAttribute("role", "group");
  text.setAttribute("aria-label", "Tokens; the arrow keys go from one to the next");
  text.addEventListener("click", event => go(tokens.indexOf(event.target.closest("[title]"))));
  text.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10}[event.key];
    const edge = {Home: 0, End: tokens.length - 1}[event.key];
    if (step === undefined && edge === undefined) return;
    event.preventDefault();
    go(edge ?? Math.min(Math.max(current + step, 0), tokens.length - 1));
  });
  return box;
}
