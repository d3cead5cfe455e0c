#pragma once

#include <span>

#include "specllama/types.h"

namespace specllama {

// A drafter that reads the hidden states of what the target decodes: also while a prompt is taken
// in, and in rounds without a draft.
class StateReader {
 public:
    virtual ~StateReader() = default;

    // What the target has decoded last: the token of a sequence at position first + i, and all
    // before it, in rows[i]. These tokens stay, as far as `tokens`, the whole sequence, has them.
    // It may be told again what it knows. What it throws is as for Drafter.
    virtual void absorb(SequenceId sequence, TokenSpan tokens, Position first,
                        std::span<const int> rows) = 0;
};

}  // namespace specllama
