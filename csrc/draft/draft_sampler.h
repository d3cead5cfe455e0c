#pragma once

#include <cstddef>

#include "sample/sampler.h"
#include "specllama/config.h"

namespace specllama {

// How a model's draft tokens are chosen: by the target's rule and noise, but with a temperature and
// cuts of its own, if it was given any.
Sampler draft_sampler(const Sampler& target, const DraftModelOptions& options, std::size_t n_vocab);

// Throws InvalidArgument when one of these options is out of range.
void check_draft_options(const DraftModelOptions& options, std::size_t n_vocab);

}  // namespace specllama
