#pragma once

#include <cstddef>
#include <span>

#include "sample/sampler.h"
#include "specllama/config.h"
#include "specllama/drafter.h"

namespace specllama {

// The sampler that chooses a model's draft tokens: the target's choice rule and noise, but the
// draft model's temperature, top_k, top_p and min_p where these are set. It has no grammar.
Sampler draft_sampler(const Sampler& target, const DraftModelOptions& options, std::size_t n_vocab);

// Chooses the token after `tokens` (the sequence's, then the draft's) from a model's logits and
// adds it to the draft, with up to proposal.max_beside other guesses beside it. Returns false and
// adds nothing if the token is less sure than p_min, all are forbidden, or the logits hold a NaN
// (then proposal.error is set). drawn_from: receives the distribution of a drawn token; the draft
// points to it.
bool draft_next(Proposal& proposal, Sampler& sampler, double p_min, std::span<float> logits,
                TokenSpan tokens, Distribution& drawn_from);

// Throws InvalidArgument when one of these options is out of range.
void check_draft_options(const DraftModelOptions& options, std::size_t n_vocab);

}  // namespace specllama
