// The same question without and with drafts, side by side.

import * as settings from "./settings.js";
import * as work from "./work.js";
import {Answer} from "./answer.js";
import {announce, at, make} from "./dom.js";
import {Generation} from "./generation.js";
import {follow, toEnd} from "./view.js";
import {message, newTurn, textOf} from "./turn.js";

/** The fields of each side's request. */
const SIDES = {plain: {"speculative.n_max": 0}, drafts: {}};
const SEEDS = 2 ** 32;

/** The meter of a side: tokens so far, and tokens per second. */
class Meter {
  /** @param {string} name of the side */
  constructor(name) {
    this.bar = at(`${name}-bar`);
    this.text = at(`${name}-rate`);
  }

  /** @param {Answer} answer @param {number} most the larger number of both sides */
  show(answer, most) {
    const {counted} = answer;
    this.bar.max = Math.max(most, 1);
    this.bar.value = counted.total;
    const figures = [`${counted.total} tokens`];
    if (counted.rate) figures.push(`${counted.rate.toFixed(1)} tokens/s`);
    if (counted.perRound) figures.push(`${counted.perRound.toFixed(2)} per round`);
    this.text.textContent = figures.join(" · ");
  }
}

/**
 * Ask both sides. If one fails, the question returns to the input field.
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

/** The result. @param {Answer[]} answers the one without drafts first */
function verdict([plain, drafts]) {
  const isSame = textOf(plain.turn) === textOf(drafts.turn);
  const ratio = drafts.counted.rate / plain.counted.rate;
  return [
    make("strong", {}, Number.isFinite(ratio) && ratio > 0 ? `${ratio.toFixed(2)}×` : "–"),
    " the speed without drafts. ",
    isSame ? "Both texts are identical."
      : "The texts differ: at the first difference, two tokens were almost equally likely.",
  ];
}
