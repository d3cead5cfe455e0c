// A request whose answer is being generated.

import * as api from "./api.js";

const SAVE_MS = 500;  // minimum time between two saves of a running answer
const STOP_MS = 5000;  // time for the server to end an answer

export class Generation {
  /**
   * @param {import("./answer.js").Answer} answer the answer to fill
   * @param {object} body of the request
   * @param {string} key
   * @param {{save?: () => void, trace?: (html: string) => void}} [store] functions that store the
   *   answer and its trace
   */
  constructor(answer, body, key, {save, trace} = {}) {
    Object.assign(this, {answer, body, key, keepTrace: trace});
    this.keep = save ?? (() => {});
    this.isStopped = false;
    this.aborting = new AbortController();
  }

  /** Store the answer so far. */
  save() {
    this.answer.drawing.now();
    this.keep();
  }

  /** Fill the answer, unless it was stopped before. Throws an Error if the answer is empty or
      incomplete. */
  async run() {
    const {answer} = this;
    if (this.isStopped) return;
    answer.begin();
    let saved = 0;
    try {
      for await (const event of api.generate(this.body, this.key, this.aborting.signal)) {
        if (event.id) this.id = event.id;
        answer.take(event);
        if (event.trace) {
          answer.turn.traced = !!this.keepTrace;
          this.keepTrace?.(event.trace);
        }
        if (!answer.counted.tokens || performance.now() - saved < SAVE_MS) continue;
        this.save();
        saved = performance.now();
      }
      if (!answer.counted.tokens && !this.isStopped)
        throw Error("The model returned an empty answer.");
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      answer.end();
    }
  }

  /** Stop it; the server then sends the trace of the answer so far. A second call does not wait. */
  async stop() {
    const isFirst = !this.isStopped;
    this.isStopped = true;
    if (this.answer.counted) this.answer.counted.isStopped = true;
    setTimeout(() => this.aborting.abort(), STOP_MS);
    if (!isFirst || !this.id || !await api.cancel(this.body, this.id, this.key))
      this.aborting.abort();
  }
}
