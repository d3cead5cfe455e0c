#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "draft/ngram/frequency_table.h"
#include "specllama/ngram_options.h"
#include "specllama/types.h"

namespace specllama {

// Predicts the next tokens of a sequence from the tokens that followed the same context before.
// Uses frequency tables of n-grams of every order from 2 to max_order, with contexts hashed by
// FNV-1a, and the longest known context first. Needs no model. (The n-gram approximation of
// Leviathan et al. 2023, section 3.6, with back-off and counts from the sequence itself.)
class NGramPredictor {
 public:
    static constexpr int kMinOrder = 2;
    static constexpr int kMaxOrder = 8;
    static constexpr std::size_t kMinBytes = std::size_t{64} << 10;

    struct Prediction {
        Token token = kNoToken;
        // n of the n-gram that predicted it, whose context has n - 1 tokens.
        int order = 0;
        // Fraction of this token among all that followed the context, in (0, 1].
        float frequency = 0;
        // How often the context was seen: the more often, the more reliable the frequency. 0 from
        // `draw`.
        std::uint32_t seen = 0;

        // The frequency by the rule of succession (Laplace 1814), as if the context had occurred
        // once more with another token after it, since a single occurrence may be chance.
        float confidence() const {
            const auto n = static_cast<float>(seen);
            return frequency * n / (n + 1);
        }
    };

    // Throws InvalidArgument when an option is out of range.
    explicit NGramPredictor(const NGramOptions& options = {});

    // Appends tokens to the sequence.
    void update(Token token);
    void update_batch(TokenSpan tokens);

    // Length [tokens] of the longest known context at the end of the sequence. Never allocates.
    int n_known() const;

    // Writes the most likely continuation to `out` until it is full or no context is known, and
    // returns its length. Each token is the most frequent one after the longest known context
    // (among equals, the most recent), and then becomes part of the context. Never allocates.
    std::size_t predict(std::span<Prediction> out) const;

    // The most frequent token after the sequence followed by `behind`, which is not counted;
    // kNoToken if no context is known. alternative: receives the second most frequent token after
    // the same context, kNoToken if there is none; may be null. Never allocates.
    Prediction next(TokenSpan behind, Prediction* alternative = nullptr) const;

    // Like `next`, but choose(frequencies) -> token chooses the continuation of the longest known
    // context. `frequencies` receives the frequencies of all its continuations.
    template <typename Choose>
    Prediction draw(TokenSpan behind, Distribution& frequencies, Choose choose) const {
        const int order = walk(behind).frequencies(frequencies);
        if (order == 0) return {};
        const Token token = choose(frequencies);
        return {token, order, static_cast<float>(probability(frequencies, token)), 0};
    }

    std::size_t size_bytes() const;

    // Most (context, token) pairs of one order within max_bytes.
    std::size_t capacity() const { return capacity_; }

 private:
    // The last tokens that a context can contain, oldest first.
    using Tail = std::array<Token, kMaxOrder>;

    // Continues from the sequence's last token along tokens that are not counted.
    struct Walk {
        const NGramPredictor& predictor;
        Tail tail;
        std::size_t n_tail;

        // The most frequent token after the longest known context; kNoToken if none is known.
        Prediction best() const;
        // The second most frequent token after a context of this order.
        Prediction second(int order) const;
        // Writes the frequencies after the longest known context. Returns the order of its n-grams,
        // 0 if none is known.
        int frequencies(Distribution& out) const;
        void go(Token token);

     private:
        template <typename Ask>
        int longest(Ask ask) const;
    };

    Walk walk(TokenSpan behind = {}) const;
    void forget_oldest();

    int max_order_;
    std::size_t window_;
    std::size_t capacity_;
    std::vector<FrequencyTable> tables_;  // [order - kMinOrder]
    Tail tail_{};
    std::size_t n_tail_ = 0;
    std::uint32_t n_tokens_ = 0;
    // With a window: a ring of the tokens in it, whose counts are held, and of the context before
    // them.
    std::vector<Token> history_;
};

}  // namespace specllama
