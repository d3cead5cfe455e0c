#pragma once

#include <span>

#include "specllama/types.h"

namespace specllama {

class Context;

// A drafter that reads the hidden states of all tokens that the target decodes, also during prefill
// and in rounds without a draft.
class StateReader {
 public:
    virtual ~StateReader() = default;

    // Makes the target keep the hidden states that are read. LocalTarget calls this before any
    // other function. `target` must outlive the reader. Throws OutOfMemory, InvalidArgument and
    // ModelError.
    virtual void attach(Context& target) = 0;

    // Reads the target's last decode: rows[i] of its batch is token first + i of a sequence's text.
    // `tokens` is the whole text, without its images and sounds; rows beyond its end are ignored.
    // Tokens may be repeated. Exceptions are treated like those of a Drafter.
    virtual void process(SequenceId sequence, TokenSpan tokens, Position first,
                         std::span<const int> rows) = 0;
};

}  // namespace specllama
