#include "specllama/stats.h"

namespace specllama {

namespace {

double ratio(double numerator, double denominator) {
    return denominator > 0 ? numerator / denominator : 0;
}

}  // namespace

double Stats::acceptance_rate() const { return ratio(accepted, drafted); }

double Stats::tokens_per_round() const { return ratio(chosen_tokens, rounds); }

double Stats::tokens_per_second() const {
    return ratio(generated_tokens - prefill_generated_tokens, seconds.total - seconds.prefill);
}

double Stats::prompt_tokens_per_second() const {
    return rounds > 0 ? ratio(prompt_tokens - reused_tokens, seconds.prefill) : 0;
}

}  // namespace specllama
