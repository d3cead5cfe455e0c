// The figures of an answer.

const percent = (part, whole) => `${Math.round(100 * part / whole)}%`;

/** Counts the tokens of a generation, and measures its times. */
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

  /** Tokens so far, including those without text. */
  get total() {
    return this.usage?.completion_tokens ?? this.tokens;
  }

  /** Tokens per second so far; 0 before the second token. */
  get rate() {
    return this.last > this.first ? (this.tokens - 1) / (this.last - this.first) * 1000 : 0;
  }

  /** Tokens per round, one of them from the target; 0 until the server reports it. */
  get perRound() {
    const {predicted_rounds_n: rounds, draft_n_accepted: accepted} = this.timings ?? {};
    return rounds ? 1 + accepted / rounds : 0;
  }

  /** The figures as texts. @returns {string[]} */
  get texts() {
    const found = [`${this.total} tokens`];
    if (this.rate) found.push(`${this.rate.toFixed(1)} tokens/s`);
    if (this.timings?.speedup) found.push(`speedup ${this.timings.speedup.toFixed(1)}×`);
    if (this.perRound) found.push(`${this.perRound.toFixed(2)} tokens per round`);
    found.push(`${percent(this.drafted, this.tokens)} from drafts`);
    const {accepted_tokens: accepted, drafted_tokens: drafted} = this.usage ?? {};
    if (drafted) found.push(`${accepted} of ${drafted} drafted tokens accepted`);
    found.push(`first token after ${((this.first - this.began) / 1000).toFixed(2)} s`);
    if (this.timings?.id_slot >= 0) found.push(`slot ${this.timings.id_slot}`);
    if (this.isStopped) found.push("stopped");
    else if (this.reason === "length") found.push("stopped at max tokens");
    return found;
  }
}
