// The running generations. Only one action at a time generates.

import {at} from "./dom.js";

/** @type {import("./generation.js").Generation[]|null} */
let running = null;

/** Whether the page is being left. Requests fail then, but their answers have not ended. */
export let isLeft = false;

export const isRunning = () => running !== null;

/** Throw an Error if something is being generated. */
export function checkIdle() {
  if (running) throw Error("An answer is being generated. Stop it first (Esc).");
}

/** Do something, and show its error if it throws one. @param {() => any} action */
export async function attempt(action) {
  try {
    at("error").textContent = "";
    await action();
  } catch (error) {
    at("error").textContent = error.message;
  }
}

/**
 * Run generations to their ends.
 * @param {import("./generation.js").Generation[]} generations
 * @param {boolean} atOnce whether they run at once or one after the other
 */
export async function run(generations, atOnce = true) {
  running = generations;
  show();
  try {
    if (atOnce) await together(generations.map(one => one.run()));
    else for (const one of generations) await one.run();
  } finally {
    running = null;
    at("error").textContent = "";
    if (!isLeft) show();
  }
}

/** Wait for all, and throw the first error, if any. @param {Promise<void>[]} all */
async function together(all) {
  const failed = (await Promise.allSettled(all)).find(one => one.status === "rejected");
  if (failed) throw failed.reason;
}

function show() {
  at("go").hidden = running !== null;
  at("end").hidden = running === null;
}

export function stop() {
  for (const one of running ?? []) one.stop();
}

at("end").addEventListener("click", stop);
addEventListener("pagehide", () => {
  isLeft = running !== null;
  for (const one of running ?? []) one.save();
});
// The browser restores the page as it was, but its request is gone. The stored answer is not.
addEventListener("pageshow", event => {
  if (event.persisted && isLeft) location.reload();
});
