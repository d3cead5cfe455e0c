// A text that the model continues.

import * as settings from "./settings.js";
import * as storage from "./storage.js";
import * as work from "./work.js";
import {Answer} from "./answer.js";
import {announce, at, iconButton} from "./dom.js";
import {Generation} from "./generation.js";
import {textOf} from "./turn.js";
import {follow, toEnd} from "./view.js";

/** The default of the maximum number of tokens. */
export const MOST_TOKENS = 256;

/** @typedef {import("./turn.js").Turn & {prompt: string, trace?: string}} Completion */

/** @param {Completion} turn */
function show(turn) {
  const answer = new Answer(at("completion"), turn,
    {prompt: turn.prompt, loadTrace: async () => turn.trace});
  equip(answer);
  return answer;
}

/** @param {Answer} answer */
function equip(answer) {
  const {turn} = answer;
  answer.setTools(iconButton("Continue", "go", () => {
    at("prompt").value = turn.prompt + textOf(answer.turn);
    at("prompt").focus();
  }));
}

/** Show the last completion, if there is one. */
export function showLast() {
  const last = storage.completion();
  if (last) show(last);
}

/** Continue a text. @param {string} prompt */
export async function complete(prompt) {
  const answer = show({prompt, parts: []});
  const {turn} = answer;
  const body = {max_tokens: MOST_TOKENS, ...settings.wanted(), prompt};
  const save = () => storage.keepCompletion(turn);
  at("welcome").hidden = true;
  answer.ondraw = follow;
  toEnd();
  try {
    await work.run([new Generation(answer, body, at("key").value,
      {save, trace: html => { turn.trace = html; }})]);
  } finally {
    if (textOf(answer.turn)) {
      save();
      equip(answer);
      announce(`Answer complete: ${turn.figures.join(", ")}`);
    } else showLast();
  }
}
