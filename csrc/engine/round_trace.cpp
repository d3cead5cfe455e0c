#include "engine/round_trace.h"

#include <algorithm>

namespace specllama {

RoundTrace trace_of(const Turn& turn, bool planned, const Tree& verified,
                    std::span<const int> accepted, Token next) {
    RoundTrace trace;
    trace.position = turn.n_tokens;
    trace.draft_seconds = turn.spent;
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
    return trace;
}

}  // namespace specllama
