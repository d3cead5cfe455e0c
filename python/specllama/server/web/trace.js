// The server's picture of a trace, made usable without a mouse.

import {make} from "./dom.js";

// The server escapes all texts in a trace, but an imported file may contain anything.
const CLEAN = {
  ALLOWED_TAGS: ["del", "div", "p", "path", "span", "strong", "svg"],
  ALLOWED_ATTR: ["aria-label", "class", "d", "height", "role", "title", "width"],
  RETURN_DOM_FRAGMENT: true,
};

/** The styles in a trace. The page uses trace.css instead. */
const STYLES = /<style>.*?<\/style>/gs;

/**
 * Return an element that shows a trace. Below it are the details of the token that was tapped or
 * reached with the arrow keys. They are the same as in the token's tooltip.
 * @param {string} html
 */
export function picture(html) {
  const details = make("output", {},
    "Tap a token or use the arrow keys to see where it came from.");
  const box = make("div", {className: "picture"},
    globalThis.DOMPurify.sanitize(html.replace(STYLES, ""), CLEAN), details);
  const tokens = [...box.querySelectorAll(".round [title]")];
  let current = -1;
  const go = index => {
    if (!tokens[index]) return;
    tokens[current]?.removeAttribute("data-current");
    current = index;
    tokens[current].dataset.current = "";
    tokens[current].scrollIntoView({block: "nearest"});
    details.textContent = tokens[current].title;
    details.scrollIntoView({block: "nearest"});
  };
  const text = box.querySelector(".text");
  if (text === null) return box;  // a damaged file
  const strip = box.querySelector(".strip");
  if (strip) strip.tabIndex = 0;  // so that keys can scroll it
  text.tabIndex = 0;
  text.setAttribute("role", "group");
  text.setAttribute("aria-label", "Tokens; use the arrow keys to move between them");
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
