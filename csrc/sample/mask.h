#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "specllama/types.h"

namespace specllama {

// Which tokens may come next, whatever the model thinks: a grammar, or the limit of a thought. It
// keeps track of its place in the text.
class Mask {
 public:
    Mask() = default;
    Mask(const Mask&) = delete;
    Mask& operator=(const Mask&) = delete;
    virtual ~Mask() = default;

    // Sets the logits [n_vocab] of all tokens that may not come to minus infinity.
    virtual void apply(std::span<float> logits) = 0;

    virtual bool allows(Token token) = 0;

    // Moves the allowed ones of `tokens` to the front, in their order; returns their number.
    virtual std::size_t keep_allowed(std::span<Token> tokens) = 0;

    // Moves on by a token, which must be allowed and must not end the text.
    virtual void accept(Token token) = 0;

    // Whether it decides about the next token. Until then any token may come.
    virtual bool begun() const = 0;

    // An independent copy at the same place of the text.
    virtual std::unique_ptr<Mask> clone() const = 0;
};

}  // namespace specllama
