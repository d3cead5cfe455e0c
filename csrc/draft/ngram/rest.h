#pragma once

#include "specllama/draft.h"

namespace specllama {

// If `other` begins with the tokens of `draft`, adds its remaining ones to `draft`, up to `most`
// tokens in all. Returns how many were added. None if either draft was drawn: the draft's length
// would then depend on what was drawn.
int add_rest(Draft& draft, const Draft& other, int most);

}  // namespace specllama
