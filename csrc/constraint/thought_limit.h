#pragma once

#include <memory>

#include "runtime/vocab.h"
#include "sample/mask.h"
#include "specllama/generate_options.h"

namespace specllama {

// Makes the mask that limits a thought at the beginning of a text to options.reasoning_budget
// tokens. After these, only the tokens of reasoning_closing are allowed; a character or a closing
// that has begun may be completed first. `inner` (a grammar; may be null) decides everything else.
// There is no limit once the grammar has begun, or if a logit forbids the closing. Returns `inner`
// if there is no budget or no closing.
std::unique_ptr<Mask> limit_thought(const Vocab& vocab, const SamplingOptions& options,
                                    std::unique_ptr<Mask> inner);

}  // namespace specllama
