#pragma once

#include <span>

#include "draft/tree.h"
#include "plan/turn.h"
#include "specllama/trace.h"
#include "specllama/types.h"

namespace specllama {

// What is told of a round: what was verified, which of its nodes were accepted, each the child of
// the one before, and what came behind them, negative if nothing could; and where it was planned,
// what was expected of it. `position` is that in the sequence; what the decode took is left open.
RoundTrace trace_of(const Turn& turn, bool planned, const Tree& verified,
                    std::span<const int> accepted, Token next);

}  // namespace specllama
