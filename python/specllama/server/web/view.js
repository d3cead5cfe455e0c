// The scrolling part of the page. It follows a growing answer, unless the user scrolls up.

import {at} from "./dom.js";

const NEAR = 60;  // pixels from the end that still count as the end

const view = at("answers");
let following = true;

const isAtEnd = () => view.scrollHeight - view.scrollTop - view.clientHeight < NEAR;

/** Scroll to the end. */
export function toEnd() {
  view.scrollTop = view.scrollHeight;
  following = true;
}

/** Scroll to the end if the view was there. */
export function follow() {
  if (following) view.scrollTop = view.scrollHeight;
  at("to-end").hidden = isAtEnd();
}

view.addEventListener("scroll", () => {
  following = isAtEnd();
  at("to-end").hidden = following;
});
new ResizeObserver(follow).observe(view);
at("to-end").addEventListener("click", () => {
  toEnd();
  view.focus();
});
