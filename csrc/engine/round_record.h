#pragma once

#include <span>

#include "draft/tree.h"
#include "engine/sequence.h"
#include "plan/turn.h"
#include "specllama/types.h"

namespace specllama {

// Counts a round of a sequence in its statistics, and adds it to its trace, if it has one: what was
// verified, and which of its nodes were accepted, each the child of the one before; what came
// behind them, negative if nothing could; what the decode took; and where it was planned, what was
// expected of it.
void record_round(Sequence& sequence, const Turn& turn, bool planned, const Tree& verified,
                  std::span<const int> accepted, Token next, double decode_seconds);

}  // namespace specllama
