#pragma once

#include <span>

#include "draft/tree.h"
#include "specllama/stats.h"

namespace specllama {

// Counts a round of a sequence: what was verified, and which of its nodes were accepted.
void count_round(Stats& stats, const Tree& draft, std::span<const int> accepted);

}  // namespace specllama
