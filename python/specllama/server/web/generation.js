// A request whose answer is being written.

import * as api from "./api.js";

const SAVE_MS = 500;  // between two stores of a running answer
const STOP_MS = 5000;  // that the server has to end an answer

export class Generation {
  /**
   * @param {import("./answer.js").Answer} answer what it fills
   * @param {object} body of the request
   * @param {string} key
   * @param {{save?: () => void, trace?: (html: string) => void}} [store] what keeps the answer and
   *   its trace
   */
  constructor(answer, body, key, {save, trace} = {}) {
    Object.assign(this, {answer, body, key, keepTrace: trace});
    this.keep = save ?? (() => {});
    this.isStopped = false;
    this.aborting = new AbortController();
  }

  /** Store what there is so far. */
  save() {
    this.answer.drawing.now();
    this.keep();
  }

  /** Fill the answer, unless it was stopped before. Throws an Error if nothing came, or what came
      is not whole. */
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
        throw Error("The model ended its answer before it began.");
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      answer.end();
    }
  }

  /** End it; the server then gives what it has with its trace. A second call does not wait. */
  async stop() {
    const isFirst = !this.isStopped;
    this.isStopped = true;
    if (this.answer.counted) this.answer.counted.isStopped = true;
    setTimeout(() => this.aborting.abort(), STOP_MS);
    if (!isFirst || !this.id || !await api.cancel(this.body, this.id, this.key))
      this.aborting.abort();
  }
}
