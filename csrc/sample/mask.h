#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "specllama/types.h"

namespace specllama {

// What may come next, whatever the model thinks: a grammar. It keeps its place in the text.
class Mask {
 public:
    Mask() = default;
    Mask(const Mask&) = delete;
    Mask& operator=(const Mask&) = delete;
    virtual ~Mask() = default;

    // Sets the logits [n_vocab] of all tokens that may not come to minus infinity.
    virtual void apply(std::span<float> logits) = 0;

    virtual bool allows(Token token) = 0;

    // Moves those of `tokens` that may come to the front, in their order; returns how many.
    virtual std::size_t keep_allowed(std::span<Token> tokens) = 0;

    // Moves on by a token that it allows and that does not end the text.
    virtual void accept(Token token) = 0;

    // Another one at the same place of the text, which goes its own way from here.
    virtual std::unique_ptr<Mask> clone() const = 0;
};

}  // namespace specllama
