#include "engine/round_record.h"

#include <algorithm>

namespace specllama {

void count_round(Sequence& sequence, const Tree& verified, std::span<const int> accepted) {
    Stats& stats = sequence.stats;
    const auto n_accepted = static_cast<int>(accepted.size());
    const auto count = [](std::vector<int>& counts, int at) {
        if (std::ssize(counts) <= at) counts.resize(at + 1);
        ++counts[at];
    };
    const auto by_source = [&](const Tree::Node& node) -> Round& {
        return stats.by_source[static_cast<std::size_t>(node.evidence.source)];
    };
    ++stats.rounds;
    stats.drafted += verified.size();
    stats.accepted += n_accepted;
    stats.by_round.push_back({verified.size(), n_accepted});
    for (const Tree::Node& node : verified.nodes()) {
        count(stats.drafted_by_position, node.depth);
        count(stats.drafted_by_rank, node.rank);
        ++by_source(node).drafted;
    }
    for (const int node : accepted) {
        count(stats.accepted_by_position, verified[node].depth);
        count(stats.accepted_by_rank, verified[node].rank);
        ++by_source(verified[node]).accepted;
    }
    stats.accepted_by_position.resize(stats.drafted_by_position.size());
    stats.accepted_by_rank.resize(stats.drafted_by_rank.size());
}

void trace_round(Sequence& sequence, const Turn& turn, bool planned, const Tree& verified,
                 std::span<const int> accepted, Token next, double decode_seconds) {
    RoundTrace& trace = sequence.trace.emplace_back();
    trace.position = turn.n_tokens - sequence.stats.prompt_tokens;
    trace.draft_seconds = turn.spent;
    trace.decode_seconds = decode_seconds;
    if (planned) {
        trace.expected_tokens = turn.choice.tokens;
        trace.expected_seconds = turn.spent + turn.choice.seconds;
    }
    for (const Tree::Node& node : verified.nodes())
        trace.draft.push_back({.token = node.token,
                               .source = node.evidence.source,
                               .length = node.evidence.length,
                               .confidence = node.evidence.confidence,
                               .parent = node.parent});
    for (const int node : accepted) trace.draft[node].accepted = true;
    trace.accepted = static_cast<int>(accepted.size());
    trace.next = std::max(next, kNoToken);
}

}  // namespace specllama
