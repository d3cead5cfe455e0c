// A Markdown text on the page that grows during its generation.

import {copy, iconButton, make} from "./dom.js";
import {blocks} from "./markdown.js";
import {ranges, tint} from "./tint.js";
import {joined} from "./turn.js";

const PAUSE = 3;  // times the duration of the last drawing, so that the page stays responsive

export class Prose {
  constructor() {
    this.element = make("div", {className: "prose"});
    this.#restart();
  }

  /** Show a text. Finished blocks stay as they are. @param {Part[]} parts
      @param {boolean} whole whether the text is complete */
  show(parts, whole) {
    const text = joined(parts);
    if (!text.startsWith(this.#done)) this.#restart();
    const drafted = ranges(parts);
    const from = this.#done.length;
    const found = blocks(text.slice(from), this.#links);
    // A link's definition may come after its use, and may have been incomplete before.
    if (whole && from && this.#links.references) {
      this.#restart();
      this.show(parts, true);
      return;
    }
    const last = whole ? found.length - 1 : Math.max(found.findLastIndex(one => one.isCertain), 0);
    for (const one of this.#open) one.remove();
    this.#open = [];
    found.forEach((one, i) => {
      const fragment = one.render(!whole && i === found.length - 1);
      tint(fragment, text, [from + one.begin, from + one.end], drafted);
      dress(fragment);
      if (i >= last) this.#open.push(...fragment.childNodes);
      this.element.append(fragment);
    });
    if (found[last]) this.#done = text.slice(0, from + found[last].begin);
  }

  /** The text of the finished blocks. */
  #done;
  #links;
  /** The nodes of the other blocks. @type {ChildNode[]} */
  #open;

  #restart() {
    this.#done = "";
    this.#links = {};
    this.#open = [];
    this.element.replaceChildren();
  }
}

/** Add heads to code blocks, and make wide tables scroll. @param {DocumentFragment} fragment */
function dress(fragment) {
  for (const code of fragment.querySelectorAll("pre > code")) {
    const language = /\blanguage-(\S+)/.exec(code.className)?.[1] ?? "";
    const pre = code.parentNode;
    const box = make("div", {className: "code"});
    pre.replaceWith(box);
    pre.tabIndex = 0;
    pre.setAttribute("aria-label", `Code${language && `, ${language}`}`);
    pre.setAttribute("role", "group");
    box.append(make("div", {className: "code-head"}, make("span", {}, language || "text"),
      iconButton("Copy code", "copy", button => copy(code.textContent, button))), pre);
  }
  for (const table of fragment.querySelectorAll("table")) {
    const box = make("div", {className: "table", tabIndex: 0, role: "group",
      "aria-label": "Table"});
    table.replaceWith(box);
    box.append(table);
  }
}

/** Draws at most once per frame, and less often if drawing is slow. */
export class Drawing {
  /** @param {() => void} draw */
  constructor(draw) {
    this.draw = draw;
    this.asked = 0;
    this.free = 0;
  }

  /** Request a drawing. */
  ask() {
    this.asked ||= requestAnimationFrame(() => {
      this.asked = 0;
      if (performance.now() < this.free) this.ask();
      else this.now();
    });
  }

  now() {
    cancelAnimationFrame(this.asked);
    this.asked = 0;
    const began = performance.now();
    this.draw();
    const ended = performance.now();
    this.free = ended + PAUSE * (ended - began);
  }
}
