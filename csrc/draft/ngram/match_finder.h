#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "draft/ngram/longest_matches.h"
#include "draft/ngram/match.h"
#include "specllama/types.h"

namespace specllama {

// Finds earlier occurrences of the last tokens of a text, in the text itself or in another one.
//
// Each position is added to a bucket by a hash (FNV-1a) of the kMinMatch tokens that end there, and
// links to the previous position in that bucket. Of the kMaxCandidates latest positions that really
// agree, the longest match is chosen; among equally long ones, the latest with the most frequent
// next token.
//
// Takes constant time per token on average for any text, and at most kBytesPerToken bytes for each
// token of the longest text held.
class MatchFinder {
 public:
    static constexpr int kMaxCandidates = LongestMatches::kMaxCandidates;
    static constexpr std::size_t kBytesPerToken = 16;
    static constexpr std::int64_t kMinTokens = 64;
    static constexpr std::int64_t kMaxTokens = std::int64_t{1} << 31;

    // max_tokens: most tokens held; when they are exceeded, the older half is forgotten. Throws
    // InvalidArgument unless it is from kMinTokens to kMaxTokens.
    explicit MatchFinder(std::int64_t max_tokens);

    // Appends tokens to the text.
    void append(Token token);
    void append(TokenSpan tokens);

    // Removes all but the first n tokens; n must be at most size().
    void truncate(std::size_t n);

    // Number of tokens of the text, including forgotten ones.
    std::size_t size() const { return n_forgotten_ + tokens_.size(); }

    // The held part of the text, which is its end. Valid until the finder changes.
    TokenSpan tokens() const { return tokens_; }

    // The tokens of the text from `index` on; empty if that token is forgotten or does not exist.
    TokenSpan from(std::size_t index) const {
        if (index < n_forgotten_ || index > size()) return {};
        return tokens().subspan(index - n_forgotten_);
    }

    // The tokens before index `place` of the text, which must be held, or its end.
    TokenSpan before(std::size_t place) const { return tokens().first(place - n_forgotten_); }

    // The best earlier occurrence of the end of this text. Never allocates.
    Match find() const { return find(tokens_); }

    // The best occurrence of the end of another text. Never allocates.
    Match find(TokenSpan text) const;

    // Writes occurrences of the end of a text to `out`, as many as fit: the longest first; among
    // equally long ones, the latest first. Returns their number. Never allocates.
    std::size_t find_all(TokenSpan text, std::span<Match> out) const;

    std::size_t size_bytes() const;

 private:
    using Index = std::uint32_t;  // into tokens_

    Index& head(Index last);
    void enter();
    void make_room(std::size_t n_wanted);
    template <typename Take>
    void each(TokenSpan text, Take take) const;

    std::size_t max_tokens_;
    std::size_t capacity_ = 0;
    std::size_t n_forgotten_ = 0;
    std::vector<Token> tokens_;
    std::vector<Index> links_;  // [i]: the latest position before i in its bucket
    std::vector<Index> heads_;  // [bucket]: the latest position
};

}  // namespace specllama
