#pragma once

#include <span>

#include "draft/tree.h"
#include "specllama/trace.h"
#include "specllama/types.h"

namespace specllama {

// What is told of a draft that was verified: which of its nodes were accepted, each the child of
// the one before, and what came behind them, negative if nothing could. When, and how long it took,
// is left open.
RoundTrace trace_of(const Tree& verified, std::span<const int> accepted, Token next);

}  // namespace specllama
