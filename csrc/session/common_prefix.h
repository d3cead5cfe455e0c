#pragma once

#include <algorithm>

#include "specllama/types.h"

namespace specllama {

// How many tokens two texts begin with in common.
inline int common_prefix(TokenSpan a, TokenSpan b) {
    return static_cast<int>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace specllama
