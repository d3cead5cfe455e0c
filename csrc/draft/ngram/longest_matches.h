#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "draft/ngram/match.h"
#include "specllama/types.h"

namespace specllama {

// The longest matches found in a text (at least kMinMatch tokens), and the best of them.
class LongestMatches {
 public:
    using Index = std::uint32_t;
    static constexpr int kMaxCandidates = 32;

    // Adds a match; at most kMaxCandidates in total. next: index of the token after it.
    void add(int length, Index next) {
        if (length < length_) return;
        if (length > length_) n_ = 0;
        length_ = length;
        next_[n_++] = next;
    }

    bool empty() const { return n_ == 0; }
    int length() const { return length_; }

    // Index of the most frequent next token: its occurrence that was added first. tokens: the text.
    // Requires a match.
    Index best(TokenSpan tokens) const {
        const std::span<const Index> all(next_.data(), n_);
        Index best = all[0];
        std::ptrdiff_t most = 0;
        for (const Index one : all) {
            const auto count =
                std::ranges::count(all, tokens[one], [&](Index other) { return tokens[other]; });
            if (count <= most) continue;
            best = one;
            most = count;
        }
        return best;
    }

 private:
    std::array<Index, kMaxCandidates> next_;
    std::size_t n_ = 0;
    int length_ = kMinMatch;
};

}  // namespace specllama
