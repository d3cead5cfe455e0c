#include "engine/round_counts.h"

#include <cstddef>
#include <vector>

namespace specllama {

namespace {

void count(std::vector<int>& counts, int at) {
    if (static_cast<int>(counts.size()) <= at) counts.resize(at + 1);
    ++counts[at];
}

}  // namespace

void count_round(Stats& stats, const Tree& draft, std::span<const int> accepted) {
    const auto n_accepted = static_cast<int>(accepted.size());
    const auto by_source = [&](const Tree::Node& node) -> Round& {
        return stats.by_source[static_cast<std::size_t>(node.evidence.source)];
    };
    ++stats.rounds;
    stats.drafted += draft.size();
    stats.accepted += n_accepted;
    stats.by_round.push_back({draft.size(), n_accepted});
    for (const Tree::Node& node : draft.nodes()) {
        count(stats.drafted_by_position, node.depth);
        count(stats.drafted_by_rank, node.rank);
        ++by_source(node).drafted;
    }
    for (const int node : accepted) {
        count(stats.accepted_by_position, draft[node].depth);
        count(stats.accepted_by_rank, draft[node].rank);
        ++by_source(draft[node]).accepted;
    }
    stats.accepted_by_position.resize(stats.drafted_by_position.size());
    stats.accepted_by_rank.resize(stats.drafted_by_rank.size());
}

}  // namespace specllama
