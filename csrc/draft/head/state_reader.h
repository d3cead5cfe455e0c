#pragma once

#include <span>

#include "specllama/types.h"

namespace specllama {

class Context;

// A drafter that reads the hidden states of all that the target decodes, also during prefill and in
// rounds without a draft.
class StateReader {
 public:
    virtual ~StateReader() = default;

    // For LocalTarget, which calls it before all else: makes the target keep the hidden states that
    // are read. `target` must outlive the reader. Throws OutOfMemory, InvalidArgument and
    // ModelError.
    virtual void attach(Context& target) = 0;

    // Tells what the target has decoded last: rows[i] of its batch is token first + i of a
    // sequence's text, after all tokens before it. These tokens stay, as far as `tokens`, the whole
    // text, has them. Images and sounds in it are left out. Tokens may be told again. Exceptions
    // are treated as those of a Drafter.
    virtual void process(SequenceId sequence, TokenSpan tokens, Position first,
                         std::span<const int> rows) = 0;
};

}  // namespace specllama
