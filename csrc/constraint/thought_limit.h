#pragma once

#include <memory>

#include "runtime/vocab.h"
#include "sample/mask.h"
#include "specllama/generate_options.h"

namespace specllama {

// Makes the mask by which a thought at the beginning of a text has at most
// options.reasoning_budget tokens: when it has had them, the tokens of reasoning_closing are all
// that may come. A character or a closing that is begun may be completed first. Everything else is
// left to `inner`, a grammar, which may be null: once it has begun, or if a closing is forbidden by
// its logit, there is no limit. Returns `inner` if there is no budget, or no closing.
std::unique_ptr<Mask> limit_thought(const Vocab& vocab, const SamplingOptions& options,
                                    std::unique_ptr<Mask> inner);

}  // namespace specllama
