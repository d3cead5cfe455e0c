#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "draft/match.h"
#include "specllama/types.h"

namespace specllama {

// Finds where in a text the tokens stand that it, or another text, ends with.
//
// Every position is entered under a hash (FNV-1a) of the kMinMatch tokens that end there, and
// links to the one before it with the same hash. Of the kMaxCandidates latest that really agree
// the longest match wins; among equally long ones the most frequent next token, and of its
// occurrences the latest.
//
// Constant time per token on average, whatever the text; at most kBytesPerToken bytes for each
// token of the longest text held.
class MatchFinder {
 public:
    static constexpr int kMaxCandidates = 32;
    static constexpr std::size_t kBytesPerToken = 16;
    static constexpr std::int64_t kMinTokens = 64;
    static constexpr std::int64_t kMaxTokens = std::int64_t{1} << 31;

    // max_tokens: when so many are held and another one comes, the older half is forgotten.
    // Throws InvalidArgument when it is out of range.
    explicit MatchFinder(std::int64_t max_tokens);

    // Takes in the next tokens of the text. They are found from now on.
    void append(Token token);
    void append(TokenSpan tokens);

    // Takes back all but the first n tokens; n is at most size().
    void truncate(std::size_t n);

    // Tokens of the text, also those that are forgotten.
    std::size_t size() const { return n_forgotten_ + tokens_.size(); }

    // The end of the text, as far as it is held. Valid until the finder changes.
    TokenSpan tokens() const { return tokens_; }

    // What is held from this token of the text on.
    TokenSpan from(std::size_t place) const {
        if (place < n_forgotten_ || place > size()) return {};
        return tokens().subspan(place - n_forgotten_);
    }

    // The best earlier occurrence of the text's own end. Never allocates.
    Match find() const { return find(tokens_); }

    // The best occurrence of the end of another text. Never allocates.
    Match find(TokenSpan text) const;

    // As many occurrences of the end of a text as there is room for, the longest first, among
    // equally long ones the latest; returns their number. Never allocates.
    std::size_t find_all(TokenSpan text, std::span<Match> out) const;

    std::size_t size_bytes() const;

 private:
    using Index = std::uint32_t;  // of a token held

    Index& head(Index last);
    void enter();
    void make_room(std::size_t n_wanted);
    template <typename Take>
    void each(TokenSpan text, Take take) const;

    std::size_t max_tokens_;
    std::size_t capacity_ = 0;
    std::size_t n_forgotten_ = 0;
    std::vector<Token> tokens_;
    std::vector<Index> links_;  // [i]: the latest one before i with the same hash
    std::vector<Index> heads_;  // [bucket]: the latest one
};

}  // namespace specllama
