#pragma once

#include <string>

#include "draft/core_drafter.h"
#include "draft/sampled_draft.h"
#include "engine/sequence.h"
#include "specllama/error.h"
#include "system/clock.h"
#include "text/vocabulary.h"

namespace specllama {

// Checks what a drafter has proposed before it is used, and records a drafter's errors.

// What is wrong with a proposal, in one sentence; "": nothing. Faults are an error that the drafter
// reports, evidence that is missing or has no valid source, more tokens than were asked for, in a
// draft or in a drawn one, and tokens that the model does not have.
std::string fault(const DraftRequest& proposal, const Vocabulary& vocab);

// Cuts a draft and its branches after a token that ends the generation; the next turn of a
// conversation, say, may follow there. Drawn drafts stay whole: which tokens are verified must not
// depend on what was drawn.
void cut_after_end(SampledDraft& draft, const Vocabulary& vocab);

// Cuts a draft where the sampler's mask does not let it go on. Drawn drafts stay whole: a token
// that is judged must be replaced from what the draft's distribution leaves.
void cut_where_forbidden(SampledDraft& draft, const Sampler& sampler);

// Records a drafter's error, one sentence, in the sequence's statistics.
void record_error(Sequence& sequence, const std::string& message);

// Calls a drafter about one sequence. An Error that it throws is recorded and goes no further.
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
