#pragma once

#include <string>

#include "draft/core_drafter.h"
#include "draft/sampled_draft.h"
#include "engine/sequence.h"
#include "specllama/error.h"
#include "system/clock.h"
#include "text/vocabulary.h"

namespace specllama {

// Checks a drafter's proposals before they are used, and records a drafter's errors.

// What is wrong with a proposal, in one sentence; "": nothing. Faults are an error that the drafter
// reports, missing evidence, evidence without a valid source, more tokens (or drawn tokens) than
// requested, and unknown token ids.
std::string fault(const DraftRequest& proposal, const Vocabulary& vocab);

// Cuts a draft and its branches after a token that ends the generation, because the next turn of a
// conversation may follow there, for example. Drawn drafts stay whole: which tokens are verified
// must not depend on the drawn ones.
void cut_after_end(SampledDraft& draft, const Vocabulary& vocab);

// Cuts a draft before the first token that the sampler's mask forbids. Drawn drafts stay whole: a
// rejected token must be replaced from the residual of the draft's distribution.
void cut_where_forbidden(SampledDraft& draft, const Sampler& sampler);

// Records a drafter's error (one sentence) in the sequence's statistics.
void record_error(Sequence& sequence, const std::string& message);

// Calls a drafter for one sequence. Its Error is recorded and not passed on.
template <typename Call>
void contained(Sequence& sequence, Call call) {
    const Timer timer(sequence.stats.seconds.draft);
    try {
        call();
    } catch (const Error& error) {
        record_error(sequence, error.what());
    }
}

}  // namespace specllama
