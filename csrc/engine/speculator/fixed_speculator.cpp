#include "engine/speculator/fixed_speculator.h"

#include <algorithm>
#include <utility>

#include "engine/proposal_check.h"

namespace specllama {

FixedSpeculator::FixedSpeculator(Drafters drafters, int longest, const Tree::Limits& limits,
                                 const Vocabulary& vocab, std::optional<CostCurve> cost)
    : Speculator(std::move(drafters), longest, limits, vocab), cost_(std::move(cost)) {}

std::vector<CostCurve*> FixedSpeculator::curves() {
    if (!cost_) return {};
    return {&*cost_};
}

void FixedSpeculator::observe_decode(const Decode& decode) {
    if (cost_) cost_->observe(decode.n_rows, decode.n_context, decode.seconds);
}

void FixedSpeculator::ask_all(std::span<Sequence* const> sequences) {
    ask(forced(), sequences);
    const std::size_t last = drafters().size() - 1;
    const bool only_last = drafts_by_model() && tree_limits().siblings == 1;
    for (std::size_t d = only_last ? last : 0; d <= last; ++d) ask_after_forced(d, sequences);
    const Stopwatch watch;
    for (std::size_t i = 0; i < sequences.size(); ++i) choose(i);
    const double seconds = watch.seconds();
    for (Sequence* sequence : sequences) sequence->stats.seconds.draft += seconds;
}

void FixedSpeculator::choose(std::size_t i) {
    const auto all = drafts(i);
    const auto has_tokens = [](const SampledDraft* draft) { return !draft->empty(); };
    auto chosen = std::ranges::find_if(all, has_tokens);
    if (chosen == all.end()) return;
    const auto last = all.begin() + static_cast<std::ptrdiff_t>(drafters().size()) - 1;
    if (drafts_by_model() && has_tokens(*last)) chosen = last;
    Tree::Limits limits = tree_limits();
    if (limits.siblings == 1) {
        verified_[i].add(**chosen, {.nodes = (*chosen)->size()});
        return;
    }
    limits.nodes = requests_[i].max_rows;
    joined_.join(all, static_cast<std::size_t>(chosen - all.begin()), limits);
    keep_all(i, joined_.tree);
}

}  // namespace specllama
