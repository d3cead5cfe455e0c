// What is being generated: one thing at a time.

import {at} from "./dom.js";

/** @type {import("./generation.js").Generation[]|null} */
let running = null;

/** Whether the page is being left: requests now fail, which must not count as their end. */
export let isLeft = false;

export const isRunning = () => running !== null;

/** Throw an Error if something is being generated. */
export function checkIdle() {
  if (running) throw Error("An answer is being written. Stop it first (Esc).");
}

/** Do something, and show the error that it throws. @param {() => any} action */
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
 * @param {boolean} atOnce side by side, or one after the other
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

/** Wait for all, and throw the first error that one of them threw. @param {Promise<void>[]} all */
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
// The page comes back as it was left, but its request is gone. What was stored is not.
addEventListener("pageshow", event => {
  if (event.persisted && isLeft) location.reload();
});
