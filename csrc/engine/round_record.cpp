#include "engine/round_record.h"

#include <algorithm>

namespace specllama {

void record_round(const RoundRequest& request, const Choice* expected, const Verification& result) {
    Sequence& sequence = *result.sequence;
    const Tree& verified = *result.draft;
    const std::vector<int>& accepted = result.path;
    Stats& stats = sequence.stats;
    const auto n_accepted = static_cast<int>(accepted.size());
    const auto add = [](std::vector<int>& counts, int at, int n) {
        if (std::ssize(counts) <= at) counts.resize(at + 1);
        counts[at] += n;
    };
    ++stats.rounds;
    stats.drafted += verified.size();
    stats.accepted += n_accepted;
    stats.chosen_tokens += static_cast<int>(result.tokens.size());
    stats.by_round.push_back({verified.size(), n_accepted});
    for (int i = 0; i < verified.size(); ++i) {
        const Tree::Node& node = verified[i];
        const int n_right = std::ranges::binary_search(accepted, i) ? 1 : 0;
        add(stats.drafted_by_position, node.depth, 1);
        add(stats.accepted_by_position, node.depth, n_right);
        add(stats.drafted_by_rank, node.rank, 1);
        add(stats.accepted_by_rank, node.rank, n_right);
        DraftCounts& of_source = stats.by_source[static_cast<std::size_t>(node.evidence.source)];
        ++of_source.drafted;
        of_source.accepted += n_right;
    }
    if (!sequence.traces()) return;
    RoundTrace& trace = sequence.trace.emplace_back();
    trace.position = request.n_tokens - sequence.n_prompt();
    trace.draft_seconds = request.spent;
    trace.decode_seconds = sequence.in_prompt() ? 0 : result.seconds;
    if (expected != nullptr) {
        trace.expected_tokens = expected->tokens;
        trace.expected_seconds = request.spent + expected->seconds;
    }
    for (const Tree::Node& node : verified.nodes())
        trace.draft.push_back({.token = node.token,
                               .source = node.evidence.source,
                               .length = node.evidence.length,
                               .confidence = node.evidence.confidence,
                               .parent = node.parent});
    for (const int node : accepted) trace.draft[node].accepted = true;
    trace.accepted = n_accepted;
    if (result.tokens.size() > accepted.size()) trace.next = result.tokens.back();
}

}  // namespace specllama
