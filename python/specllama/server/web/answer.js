// An answer on the page: its text as it comes, its figures and its trace.

import * as store from "./store.js";
import {append, show, showBlocks} from "./text.js";
import {picture} from "./trace.js";

const percent = (part, whole) => `${Math.round(100 * part / whole)} %`;

/** Make a button that looks like a word. */
export function tool(name, action) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  button.addEventListener("click", () => action(button));
  return button;
}

/** Put a text on the clipboard and say so on the button. Browsers allow this only for pages from
    this machine or over https. */
export async function copy(text, button) {
  const name = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "The browser does not allow it";
  }
  setTimeout(() => { button.textContent = name; }, 2000);
}

export class Answer {
  /** `turn`: the answer as it is stored. `prompt`: the text that it continues, shown before it; null
      in a conversation. `trace`: its trace, if it has one already. */
  constructor(element, turn, prompt, trace = null) {
    this.turn = turn;
    this.element = element;
    this.element.classList.add("answer");
    this.text = document.createElement("div");
    this.text.className = prompt === null ? "text" : "text raw";
    this.tools = document.createElement("div");
    this.tools.className = "tools";
    this.figures = document.createElement("p");
    this.figures.className = "figures";
    this.tools.append(tool("Copy", button => copy(this.said, button)), this.figures);
    this.element.replaceChildren(this.text, this.tools);
    this.prompt = prompt;
    this.frame = 0;
    this.began = performance.now();
    this.tokens = this.drafted = this.first = 0;
    if (turn.running) turn.figures = [...(turn.figures ?? []), "cut off as the page was left"];
    delete turn.running;
    if (trace) this.addTrace(trace);
    this.draw();
  }

  get said() {
    return store.text(this.turn);
  }

  /** Add a token's text. */
  add(text, drafted) {
    append(this.turn.parts, text, drafted);
    this.last = performance.now();
    this.first ||= this.last;
    this.tokens += 1;
    this.drafted += drafted ? 1 : 0;
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (this.prompt === null) showBlocks(this.text, this.turn.parts);
    else {
      show(this.text, this.turn.parts);
      const before = document.createElement("span");
      before.className = "prompt";
      before.append(this.prompt);
      this.text.prepend(before);
    }
    if (this.tokens) this.turn.figures = this.took();
    this.figures.textContent = (this.turn.figures ?? []).join(" · ");
    this.ondraw?.();
  }

  took() {
    const figures = [`${this.usage?.completion_tokens ?? this.tokens} tokens`];
    if (this.last > this.first) {
      const rate = (this.tokens - 1) / (this.last - this.first) * 1000;
      figures.push(`${rate.toFixed(1)} per second`);
    }
    figures.push(`${percent(this.drafted, this.tokens)} from drafts`);
    if (this.usage?.drafted_tokens)
      figures.push(`${this.usage.accepted_tokens} of ${this.usage.drafted_tokens} drafted accepted`);
    if (this.timings?.predicted_rounds_n) {
      const perRound = this.usage.completion_tokens / this.timings.predicted_rounds_n;
      figures.push(`${perRound.toFixed(2)} tokens per round`);
    }
    if (this.timings?.speedup)
      figures.push(`about ${this.timings.speedup.toFixed(1)} × the speed without drafts`);
    figures.push(`first after ${((this.first - this.began) / 1000).toFixed(2)} s`);
    if (this.stopped) figures.push("stopped");
    else if (this.reason === "length") figures.push("cut at the most tokens");
    return figures;
  }

  /** Take in an event that `generate` yields. */
  take(event) {
    if ("text" in event) this.add(event.text, event.drafted);
    if (event.id) this.id = event.id;
    if (event.usage) [this.usage, this.timings] = [event.usage, event.timings];
    if (event.reason) this.reason = event.reason;
    if (event.trace) {
      this.addTrace(event.trace);
      this.ontrace?.(event.trace);
    }
    if (!("text" in event)) this.draw();
  }

  addTrace(html) {
    let box = null;
    const button = tool("Trace", () => {
      if (box === null) this.element.append(box = picture(html));
      else box.hidden = !box.hidden;
      button.setAttribute("aria-expanded", String(!box.hidden));
      if (!box.hidden) box.scrollIntoView({block: "nearest"});
    });
    button.setAttribute("aria-expanded", "false");
    this.tools.insertBefore(button, this.figures);
  }
}
