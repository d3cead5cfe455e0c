#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/target/target.h"

namespace specllama {

// All that one round needs. The engine reuses it, so that rounds need not allocate.
struct Round {
    std::vector<Sequence*> sequences;   // that take part
    std::vector<DraftLimits> limits;    // [i]: of sequences[i]
    std::vector<Verification> results;  // [i]: of sequences[i]; may be longer
    std::vector<Decode> decodes;        // since the planner was last told of any
    // The part that was verified last: results[first] to results[last - 1].
    std::size_t first = 0;
    std::size_t last = 0;
};

}  // namespace specllama
