#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "constraint/llguidance.h"
#include "specllama/types.h"

namespace specllama {

// A grammar of llguidance and its place in a text. Each function throws DecodeError if the grammar
// is too complex for llguidance's limits.
class Matcher {
 public:
    explicit Matcher(LlgMatcher* matcher) : matcher_(matcher) {}

    // An independent copy at the same place.
    Matcher clone() const;

    // Null: none.
    const char* error() const { return llguidance().matcher_get_error(matcher_.get()); }

    // Words of 32 bits in a mask.
    std::size_t n_words() const;

    // Writes the allowed next tokens to `mask` [n_words], one bit each. At the end of the grammar,
    // these are the tokens that end a text. There may be none, if no token has the required bytes.
    void mask(std::span<std::uint32_t> mask);

    // Number of leading tokens that are allowed. Meaningless once stopped.
    std::size_t n_allowed(TokenSpan tokens);

    void consume(TokenSpan tokens);

    // Whether the grammar is at its end and no token can be consumed.
    bool stopped() const { return llguidance().matcher_is_stopped(matcher_.get()); }

 private:
    struct Free {
        void operator()(LlgMatcher* matcher) const { llguidance().free_matcher(matcher); }
    };

    // Returns `result` unless it is an error.
    std::int32_t checked(std::int32_t result) const;

    std::unique_ptr<LlgMatcher, Free> matcher_;
};

}  // namespace specllama
