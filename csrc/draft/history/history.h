#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "draft/ngram/match.h"
#include "specllama/types.h"

namespace specllama {

// The latest texts of earlier requests, to draft from, within a bound. Each text has an owner, and
// a search for an owner only finds that owner's texts.
//
// The tokens are in a ring, where new tokens replace the oldest. Each position is added to a bucket
// by a hash of its owner and the kMinMatch tokens that end there, and links to the previous
// position in that bucket. Links to replaced positions may lead anywhere. So a search follows a
// bounded number of links and compares the tokens there. Nothing is ever moved or added again:
// constant time per token, whatever the bound.
class History {
 public:
    // Per token: 4 for its id, 8 for its link and owner, 2 for its half of a bucket.
    static constexpr std::size_t kBytesPerToken = 14;
    static constexpr std::int64_t kMinTokens = 1024;
    static constexpr std::int64_t kMaxTokens = std::int64_t{1} << 28;

    // max_tokens: most tokens held, including a marker after each text. Throws InvalidArgument
    // unless it is from kMinTokens to kMaxTokens.
    explicit History(std::int64_t max_tokens);

    // Adds a text; of a very long one, only the end. Parts that the newer half of the ring already
    // holds for the same owner are left out, so a conversation that is sent again with each turn is
    // stored only once.
    void append(int owner, TokenSpan text);

    // A match, and the index of the first token after it.
    struct Found {
        Match match;
        std::size_t place = 0;
    };
    // The longest match of the end of `text` in a text of this owner; among equally long ones, the
    // latest with the most frequent next token. Never allocates.
    Found find(int owner, TokenSpan text) const;

    // The tokens from `place` to the end of its text, at most kMaxSpecLength; none if the place is
    // not held. Valid until the next append. Places count all tokens ever added, so a replaced
    // place is never confused with its successor.
    TokenSpan from(std::size_t place) const;

    // The tokens before a held place: those of its text, then those of older texts.
    TokenSpan before(std::size_t place) const {
        return TokenSpan(tokens_).first(place % max_tokens_);
    }

    // Calls take(text) for all held parts of an owner's texts, the oldest first. A part is valid
    // during the call.
    template <typename Take>
    void each_text(int owner, Take take) const {
        std::size_t place = n_written_ - tokens_.size();
        while (place < n_written_) {
            const TokenSpan text = run(place);
            if (!text.empty() && links_[place % max_tokens_].owner == owner) take(text);
            place += text.size() + (text.size() < n_contiguous(place));  // the marker
        }
    }

    std::size_t n_tokens() const { return tokens_.size(); }
    std::size_t size_bytes() const;

 private:
    using Index = std::uint32_t;  // into tokens_
    struct Link {
        Index previous;  // the previous place in the bucket; any value if that was replaced
        int owner;
    };

    bool holds(std::size_t place) const {
        return place < n_written_ && n_written_ - place <= tokens_.size();
    }
    // Number of tokens from a held place to the newest token or the end of tokens_.
    std::size_t n_contiguous(std::size_t place) const;
    // The tokens from a held place to the next marker, or to the end of n_contiguous.
    TokenSpan run(std::size_t place) const;
    std::size_t n_known(int owner, TokenSpan text, std::size_t at) const;
    void store(int owner, TokenSpan text);
    void write(int owner, Token token);
    std::size_t bucket(int owner, TokenSpan last) const;

    std::size_t max_tokens_;
    std::size_t n_written_ = 0;  // tokens ever added, markers included
    std::vector<Token> tokens_;
    std::vector<Link> links_;   // [i]: of the kMinMatch tokens that end with tokens_[i]
    std::vector<Index> heads_;  // [bucket]: the latest place
};

}  // namespace specllama
