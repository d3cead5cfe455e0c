#pragma once

#include <utility>
#include <vector>

#include "specllama/stats.h"

namespace specllama {

// The figures of a generation with the names that users see, in the order of display. visit(name,
// figure) is called for each; std::invoke(figure, stats) returns its value. All code that shows all
// figures uses these functions, so that a new figure is added in one place.

template <typename Visitor>
void visit_seconds(Visitor visit) {
    visit("prefill", &Seconds::prefill);
    visit("draft", &Seconds::draft);
    visit("verify", &Seconds::verify);
    visit("choose", &Seconds::choose);
    visit("text", &Seconds::text);
    visit("total", &Seconds::total);
}

// {drafted, accepted}, for interfaces without the type DraftCounts.
inline std::pair<int, int> as_pair(const DraftCounts& round) {
    return {round.drafted, round.accepted};
}

inline std::vector<std::pair<int, int>> by_round(const Stats& stats) {
    std::vector<std::pair<int, int>> pairs;
    pairs.reserve(stats.by_round.size());
    for (const DraftCounts& round : stats.by_round) pairs.push_back(as_pair(round));
    return pairs;
}

template <typename Visitor>
void visit_stats(Visitor visit) {
    visit("seed", &Stats::seed);
    visit("exact", &Stats::exact);
    visit("same_widths", &Stats::same_widths);
    visit("n_threads", &Stats::n_threads);
    visit("prompt_tokens", &Stats::prompt_tokens);
    visit("reused_tokens", &Stats::reused_tokens);
    visit("slot", &Stats::slot);
    visit("generated_tokens", &Stats::generated_tokens);
    visit("rounds", &Stats::rounds);
    visit("drafted", &Stats::drafted);
    visit("accepted", &Stats::accepted);
    visit("forced", &Stats::forced);
    visit("chosen_tokens", &Stats::chosen_tokens);
    visit("draft_decoded_tokens", &Stats::draft_decoded_tokens);
    visit("acceptance_rate", &Stats::acceptance_rate);
    visit("tokens_per_round", &Stats::tokens_per_round);
    visit("tokens_per_second", &Stats::tokens_per_second);
    visit("prompt_tokens_per_second", &Stats::prompt_tokens_per_second);
    visit("seconds", &Stats::seconds);
    visit("drafted_by_position", &Stats::drafted_by_position);
    visit("accepted_by_position", &Stats::accepted_by_position);
    visit("drafted_by_rank", &Stats::drafted_by_rank);
    visit("accepted_by_rank", &Stats::accepted_by_rank);
    visit("by_round", &by_round);
    visit("by_drafter", &Stats::by_source);
    visit("decode_seconds", &Stats::decode_seconds);
    visit("draft_step_seconds", &Stats::draft_step_seconds);
    visit("draft_break_even", &Stats::draft_break_even);
    visit("drafter_errors", &Stats::drafter_errors);
    visit("last_drafter_error", &Stats::last_drafter_error);
}

}  // namespace specllama
