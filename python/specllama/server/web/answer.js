// An answer on the page: thoughts, text, tools, figures and trace.

import {icon, iconButton, make, copy} from "./dom.js";
import {edit} from "./editor.js";
import {Figures} from "./figures.js";
import {Drawing, Prose} from "./prose.js";
import {tinted} from "./tint.js";
import {picture} from "./trace.js";
import {append, textOf} from "./turn.js";

/** @typedef {import("./turn.js").Turn} Turn */

/** A plain text, shown after the prompt that it continues. */
class Raw {
  /** @param {string} prompt */
  constructor(prompt) {
    this.element = make("div", {className: "raw"});
    this.prompt = prompt;
  }

  show(parts) {
    this.element.replaceChildren(make("span", {className: "prompt"}, this.prompt), ...tinted(parts));
  }
}

export class Answer {
  /**
   * @param {HTMLElement} element the element to fill
   * @param {Turn} turn
   * @param {object} options
   * @param {string} [options.prompt] the text that it continues; undefined: in a conversation
   * @param {() => Promise<string|undefined>} [options.loadTrace] loads its trace
   */
  constructor(element, turn, {prompt, loadTrace} = {}) {
    this.turn = turn;
    this.element = element;
    this.loadTrace = loadTrace;
    element.classList.add("answer");
    this.text = prompt === undefined ? new Prose() : new Raw(prompt);
    this.text.element.classList.add("text");
    this.thoughts = this.#thoughts();
    this.tools = make("div", {className: "tools"});
    this.figures = make("p", {className: "figures"});
    this.foot = make("div", {className: "foot"}, this.tools, this.figures);
    element.replaceChildren(this.thoughts, this.text.element, this.foot);
    this.drawing = new Drawing(() => this.#draw());
    this.isRunning = false;
    if (turn.running)
      turn.figures = [...(turn.figures ?? []), "interrupted when the page was closed"];
    delete turn.running;
    this.drawing.now();
  }

  #thoughts() {
    this.thoughtText = new Prose();
    this.thoughtName = make("span");
    return make("details", {className: "thoughts", hidden: true},
      make("summary", {}, icon("next"), this.thoughtName), this.thoughtText.element);
  }

  /** Set the buttons: Copy, the given ones, and Trace. @param {...Node} buttons */
  setTools(...buttons) {
    const traced = iconButton("Trace", "trace", () => this.#toggleTrace());
    traced.setAttribute("aria-expanded", String(!!this.trace && !this.trace.hidden));
    traced.hidden = !this.turn.traced || !this.loadTrace;
    this.tools.replaceChildren(
      iconButton("Copy", "copy", button => copy(textOf(this.turn), button)), ...buttons, traced);
  }

  /** Open an editor for another version; see `edit`. */
  edit(verb, use) {
    edit(this, verb, use);
  }

  async #toggleTrace() {
    if (!this.trace) {
      const html = await this.loadTrace();
      if (html === undefined || this.trace) return;
      this.element.append(this.trace = picture(html));
    } else this.trace.hidden = !this.trace.hidden;
    this.tools.querySelector(".icon-button.trace")
      .setAttribute("aria-expanded", String(!this.trace.hidden));
    if (!this.trace.hidden) this.trace.scrollIntoView({block: "nearest"});
  }

  /** Prepare for the events of a generation. */
  begin() {
    this.counted = new Figures();
    this.isRunning = this.turn.running = true;
    this.trace?.remove();
    delete this.trace;
    delete this.turn.traced;
    this.element.classList.add("busy");
    this.element.setAttribute("aria-busy", "true");
  }

  /** Add an event that `generate` yields. */
  take(event) {
    if (event.text) {
      const parts = event.isThought ? this.turn.thoughts ??= [] : this.turn.parts;
      append(parts, event.text, event.drafted);
      this.counted.count(event.drafted);
    }
    if (event.usage) {
      this.counted.usage = event.usage;
      this.turn.used = event.usage.total_tokens;
    }
    for (const name of ["timings", "reason"]) if (event[name]) this.counted[name] = event[name];
    this.drawing.ask();
  }

  end() {
    this.isRunning = false;
    delete this.turn.running;
    this.element.classList.remove("busy");
    this.element.removeAttribute("aria-busy");
    this.drawing.now();
  }

  #draw() {
    const {thoughts = [], parts} = this.turn;
    this.thoughts.hidden = !thoughts.length;
    if (thoughts.length) {
      this.thoughtName.textContent = this.isRunning && !parts.length ? "Thinking…" : "Thoughts";
      this.thoughtText.show(thoughts, !this.isRunning || parts.length > 0);
    }
    this.text.show(parts, !this.isRunning);
    if (this.counted?.tokens) this.turn.figures = this.counted.texts;
    this.figures.textContent = (this.turn.figures ?? []).join(" · ");
    this.ondraw?.();
  }
}
