#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/target/target.h"

namespace specllama {

// The data of one round. The engine reuses it, so that rounds do not allocate.
struct Round {
    std::vector<Sequence*> sequences;   // of this round
    std::vector<DraftLimits> limits;    // [i]: of sequences[i]
    std::vector<Verification> results;  // [i]: of sequences[i]; may be longer
    std::vector<Decode> decodes;        // not yet observed by the planner
    // The part verified last: results[first] to results[last - 1].
    std::size_t first = 0;
    std::size_t last = 0;
};

}  // namespace specllama
