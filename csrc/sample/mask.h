#pragma once

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

    // Moves on by a token that it allows and that does not end the text.
    virtual void accept(Token token) = 0;
};

}  // namespace specllama
