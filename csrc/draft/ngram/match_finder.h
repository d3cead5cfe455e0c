#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "draft/ngram/longest_matches.h"
#include "draft/ngram/match.h"
#include "specllama/types.h"

namespace specllama {

// Finds where the tokens that a text ends with occur before in it, or in another text.
//
// Every position is entered into a bucket by a hash (FNV-1a) of the kMinMatch tokens that end
// there, and links to the position before it in that bucket. Of the kMaxCandidates latest positions
// that really agree, the longest match wins; among equally long ones the most frequent next token,
// and of its occurrences the latest.
//
// Constant time per token on average, whatever the text; at most kBytesPerToken bytes for each
// token of the longest text held.
class MatchFinder {
 public:
    static constexpr int kMaxCandidates = LongestMatches::kMaxCandidates;
    static constexpr std::size_t kBytesPerToken = 16;
    static constexpr std::int64_t kMinTokens = 64;
    static constexpr std::int64_t kMaxTokens = std::int64_t{1} << 31;

    // max_tokens: most tokens held; when another one comes, the older half is forgotten. Throws
    // InvalidArgument unless it is from kMinTokens to kMaxTokens.
    explicit MatchFinder(std::int64_t max_tokens);

    // Appends tokens to the text. They are found from now on.
    void append(Token token);
    void append(TokenSpan tokens);

    // Takes back all but the first n tokens; n is at most size().
    void truncate(std::size_t n);

    // Number of tokens of the text, forgotten ones included.
    std::size_t size() const { return n_forgotten_ + tokens_.size(); }

    // The part of the text that is held: its end. Valid until the finder changes.
    TokenSpan tokens() const { return tokens_; }

    // The tokens from `index` of the text on; empty if that token is forgotten or not there.
    TokenSpan from(std::size_t index) const {
        if (index < n_forgotten_ || index > size()) return {};
        return tokens().subspan(index - n_forgotten_);
    }

    // The tokens before index `place` of the text, which is held or its end.
    TokenSpan before(std::size_t place) const { return tokens().first(place - n_forgotten_); }

    // The best earlier occurrence of the text's own end. Never allocates.
    Match find() const { return find(tokens_); }

    // The best occurrence of the end of another text. Never allocates.
    Match find(TokenSpan text) const;

    // Writes occurrences of the end of a text, as many as `out` has room for: the longest first,
    // among equally long ones the latest. Returns their number. Never allocates.
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
