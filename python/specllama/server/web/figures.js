// The figures of an answer.

const percent = (part, whole) => `${Math.round(100 * part / whole)} %`;

/** Counts what comes of a generation, and takes the times. */
export class Figures {
  constructor() {
    this.began = performance.now();
    this.first = this.last = 0;
    this.tokens = this.drafted = 0;
  }

  /** Count a token. @param {boolean} drafted */
  count(drafted) {
    this.last = performance.now();
    this.first ||= this.last;
    this.tokens += 1;
    this.drafted += drafted ? 1 : 0;
  }

  /** Tokens so far, also those that added no text. */
  get total() {
    return this.usage?.completion_tokens ?? this.tokens;
  }

  /** Tokens per second so far; 0: not known yet. */
  get rate() {
    return this.last > this.first ? (this.tokens - 1) / (this.last - this.first) * 1000 : 0;
  }

  /** Tokens per round of the target: one of its own, and those of drafts; 0: not known yet. */
  get perRound() {
    const {predicted_rounds_n: rounds, draft_n_accepted: accepted} = this.timings ?? {};
    return rounds ? 1 + accepted / rounds : 0;
  }

  /** The figures, each with its words. @returns {string[]} */
  get texts() {
    const found = [`${this.total} tokens`];
    if (this.rate) found.push(`${this.rate.toFixed(1)} per second`);
    if (this.timings?.speedup) found.push(`${this.timings.speedup.toFixed(1)} × plain`);
    if (this.perRound) found.push(`${this.perRound.toFixed(2)} tokens per round`);
    found.push(`${percent(this.drafted, this.tokens)} from drafts`);
    if (this.usage?.drafted_tokens)
      found.push(`${this.usage.accepted_tokens} of ${this.usage.drafted_tokens} drafted accepted`);
    found.push(`first after ${((this.first - this.began) / 1000).toFixed(2)} s`);
    if (this.timings?.id_slot >= 0) found.push(`slot ${this.timings.id_slot}`);
    if (this.isStopped) found.push("stopped");
    else if (this.reason === "length") found.push("cut at the most tokens");
    return found;
  }
}
