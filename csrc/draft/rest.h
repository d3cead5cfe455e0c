#pragma once

#include "specllama/draft.h"

namespace specllama {

// Has a draft go on with what another one has behind the same tokens, its rest, up to `most` tokens
// in all. How many tokens that are. Where either was drawn there are none: its length would depend
// on what was drawn.
int add_rest(Draft& draft, const Draft& other, int most);

}  // namespace specllama
