#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "draft/core_drafter.h"
#include "runtime/memory.h"
#include "specllama/types.h"

namespace specllama {

// The tokens of a sequence whose states a StateReader has seen, then the tokens of a draft.
struct SeenTokens {
    std::vector<Token> tokens;  // those whose states were seen or skipped, then the draft
    int n_seen = 0;             // of these, without the draft

    // Number of leading tokens that a prompt has in common with the tokens seen.
    int n_common(TokenSpan prompt) const {
        const TokenSpan seen = TokenSpan(tokens).first(n_seen);
        return static_cast<int>(std::ranges::mismatch(seen, prompt).in1 - seen.begin());
    }

    // Implements StateReader::process, whose arguments come first. Calls `add_state` with the row
    // of each token not seen before, and then counts the token as seen.
    template <typename AddState>
    void add(TokenSpan sequence, Position first, std::span<const int> rows, AddState add_state) {
        const int last =
            std::min(first + static_cast<int>(rows.size()), static_cast<int>(sequence.size()));
        if (last <= n_seen) return;
        tokens.resize(n_seen);
        tokens.insert(tokens.end(), sequence.begin() + n_seen, sequence.begin() + last);
        for (Position position = std::max(first, n_seen); position < last; ++position) {
            add_state(rows[position - first]);
            n_seen = position + 1;
        }
    }

    // Begins a draft if one is wanted and the states of all tokens of the request but the last were
    // seen. Returns whether it began.
    bool begin_draft(const DraftRequest& request) {
        if (!request.draft.empty() || n_seen == 0 || n_seen + 1 != std::ssize(request.tokens) ||
            !request.wants_more())
            return false;
        tokens.resize(n_seen);
        tokens.push_back(request.tokens.back());
        return true;
    }
};

// A sequence whose memory holds the first n_tokens of a prompt; follower null: none.
template <typename Follower>
struct PrefixHolder {
    SequenceId sequence = -1;
    const Follower* follower = nullptr;
    int n_tokens = 0;
};

// The sequence with the longest prefix of a prompt, if it exceeds the prefix of `own` by more than
// Memory::kShortestCopy tokens. Follower::n_copyable: leading tokens of a prompt that can be copied
// from it.
template <typename Follower>
PrefixHolder<Follower> longest_prefix(const std::map<SequenceId, Follower>& followers,
                                      const Follower& own, TokenSpan prompt) {
    PrefixHolder<Follower> longest;
    longest.n_tokens = own.n_common(prompt) + Memory::kShortestCopy;
    for (const auto& [sequence, follower] : followers)
        if (const int n = follower.n_copyable(prompt); n > longest.n_tokens)
            longest = {sequence, &follower, n};
    return longest;
}

}  // namespace specllama
