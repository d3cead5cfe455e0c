#pragma once

#include <span>

#include "draft/tree.h"
#include "engine/sequence.h"
#include "plan/turn.h"
#include "specllama/types.h"

namespace specllama {

// Counts a round in the statistics of its sequence and adds it to the trace, if there is one.
// verified: the draft; accepted: its accepted nodes, each the child of the one before; heard: what
// the target said, as in Speculator::observe. decode_seconds: of the round's decode. planned:
// whether turn.choice says what was expected of the round.
void record_round(Sequence& sequence, const Turn& turn, bool planned, const Tree& verified,
                  std::span<const int> accepted, TokenSpan heard, double decode_seconds);

}  // namespace specllama
