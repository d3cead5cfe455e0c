#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "draft/ngram/match.h"
#include "specllama/types.h"

namespace specllama {

// The texts of earlier requests, to draft from: the latest ones, within a bound. Each has an owner,
// and what is found for an owner is only ever in his own texts.
//
// The tokens are in a ring, where new ones replace the oldest. Every place is entered into a bucket
// by a hash of its owner and the kMinMatch tokens that end there, and links to the place before it
// in that bucket. Links to places that were replaced lead anywhere; they are followed a bounded
// number of times, and what they lead to is compared with what is looked for. So nothing is ever
// moved or entered again: constant time per token, whatever the bound.
class History {
 public:
    // Of each token: 4 itself, 8 for its link and owner, 2 for its half of a bucket.
    static constexpr std::size_t kBytesPerToken = 14;
    static constexpr std::int64_t kMinTokens = 1024;
    static constexpr std::int64_t kMaxTokens = std::int64_t{1} << 28;

    // max_tokens: most tokens held, a marker after each text included. Throws InvalidArgument
    // unless it is from kMinTokens to kMaxTokens.
    explicit History(std::int64_t max_tokens);

    // Adds a text; of a very long one, the end. Parts of it that the newer half of the ring has of
    // the same owner already are left out, so a conversation that is sent again with each turn
    // takes up its length only once.
    void append(int owner, TokenSpan text);

    // A match, and the index of the first token after it.
    struct Found {
        Match match;
        std::size_t place = 0;
    };
    // The longest match of the end of `text` in a text of this owner; among equally long ones that
    // with the most frequent next token, of these the latest. Never allocates.
    Found find(int owner, TokenSpan text) const;

    // The tokens from a place on, up to the end of its text, at most kMaxSpecLength of them; none
    // if the place is not held. Valid until the next append. Places are indices of all tokens ever
    // added, so one that was replaced is never taken for its successor.
    TokenSpan from(std::size_t place) const;

    // The tokens before a place that is held: of its own text, and of others before that.
    TokenSpan before(std::size_t place) const {
        return TokenSpan(tokens_).first(place % max_tokens_);
    }

    // Calls take(text) with all that is held of an owner's texts, the oldest first, in pieces that
    // are valid for the call.
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
        Index previous;  // the place before in the same bucket, or anything
        int owner;
    };

    bool holds(std::size_t place) const {
        return place < n_written_ && n_written_ - place <= tokens_.size();
    }
    // Number of tokens from a place that is held to the newest one, or to the end of tokens_.
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
