#pragma once

#include <cstddef>
#include <span>

#include "sample/sampler.h"
#include "specllama/config.h"
#include "specllama/drafter.h"

namespace specllama {

// How a model's draft tokens are chosen: by the target's rule and noise, but with a temperature and
// cuts of its own, if it was given any.
Sampler draft_sampler(const Sampler& target, const DraftModelOptions& options, std::size_t n_vocab);

// Adds to a draft what a model's logits call for behind `tokens`, the sequence's and the draft's:
// a token, and beside it as many second choices as are wanted. Whether there is one that is surer
// than p_min. drawn_from: the place of what a token is drawn from; it stays there.
bool draft_next(Proposal& proposal, Sampler& sampler, double p_min, std::span<float> logits,
                TokenSpan tokens, Distribution& drawn_from);

// Throws InvalidArgument when one of these options is out of range.
void check_draft_options(const DraftModelOptions& options, std::size_t n_vocab);

}  // namespace specllama
