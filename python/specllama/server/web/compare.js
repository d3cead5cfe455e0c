// The same question plainly and with drafts, side by side.

import * as settings from "./settings.js";
import * as work from "./work.js";
import {Answer} from "./answer.js";
import {announce, at, make} from "./dom.js";
import {Generation} from "./generation.js";
import {follow, toEnd} from "./view.js";
import {message, newTurn, textOf} from "./turn.js";

/** What is asked for on each side. */
const SIDES = {plain: {"speculative.n_max": 0}, drafts: {}};
const SEEDS = 2 ** 32;

/** The meter of a side: tokens so far, and how many of them a second. */
class Meter {
  /** @param {string} name of the side */
  constructor(name) {
    this.bar = at(`${name}-bar`);
    this.text = at(`${name}-rate`);
  }

  /** @param {Answer} answer @param {number} most tokens of both sides */
  show(answer, most) {
    const {counted} = answer;
    this.bar.max = Math.max(most, 1);
    this.bar.value = counted.total;
    const figures = [`${counted.total} tokens`];
    if (counted.rate) figures.push(`${counted.rate.toFixed(1)} per second`);
    if (counted.perRound) figures.push(`${counted.perRound.toFixed(2)} per round`);
    this.text.textContent = figures.join(" · ");
  }
}

/**
 * Ask both sides. If one fails, the question is where one writes again.
 * @param {string} text
 * @param {import("./turn.js").Attachment[]} files
 */
export async function compare(text, files) {
  const question = newTurn("", null, "user", text);
  if (files.length) question.files = files;
  const common = {...settings.wanted(), timings_per_token: true,
    messages: settings.withSystem([message(question)])};
  common.seed ??= crypto.getRandomValues(new Uint32Array(1))[0] % SEEDS;
  at("question").textContent = text;
  at("compared").hidden = false;
  at("welcome").hidden = true;
  at("verdict").textContent = "";
  const sides = Object.entries(SIDES).map(([name, fields]) => {
    const answer = new Answer(at(name), newTurn("", null, "assistant"));
    answer.setTools();
    return {answer, meter: new Meter(name), body: {...common, ...fields}};
  });
  const generations = sides.map(one => new Generation(one.answer, one.body, at("key").value));
  const measure = () => {
    const most = Math.max(...sides.map(one => one.answer.counted?.total ?? 0));
    for (const one of sides) if (one.answer.counted) one.meter.show(one.answer, most);
    follow();
  };
  for (const one of sides) one.answer.ondraw = measure;
  toEnd();
  try {
    await work.run(generations, at("at-once").checked);
  } catch (error) {
    at("prompt").value ||= text;
    throw error;
  }
  at("verdict").replaceChildren(...generations.some(one => one.isStopped) ? ["Stopped."]
    : verdict(sides.map(one => one.answer)));
  announce(at("verdict").textContent);
  follow();
}

/** What came of it. @param {Answer[]} answers the plain one first */
function verdict([plain, drafts]) {
  const isSame = textOf(plain.turn) === textOf(drafts.turn);
  const ratio = drafts.counted.rate / plain.counted.rate;
  return [
    make("strong", {}, Number.isFinite(ratio) && ratio > 0 ? `${ratio.toFixed(2)} ×` : "–"),
    " the speed of plain decoding. ",
    isSame ? "Both texts are the same, character by character."
      : "The texts differ: where they part, two tokens were nearly as likely.",
  ];
}
