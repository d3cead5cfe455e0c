#pragma once

#include <string>

#include "engine/clock.h"
#include "engine/sequence.h"
#include "llama/vocab.h"
#include "specllama/draft.h"
#include "specllama/drafter.h"
#include "specllama/error.h"

namespace specllama {

// What a drafter has answered, before anything is made of it; and what becomes of its errors.

// What is wrong with a proposal, in a sentence, or "": its drafter's own error, evidence that is
// missing or of no source there is, more tokens than were asked for, tokens that the model has not.
std::string fault(const Proposal& proposal, const Vocab& vocab);

// Nothing comes behind a token that ends the generation: of a conversation, say, the next turn's
// header. Drawn drafts stay whole: where one is verified must not depend on what was drawn.
void cut_behind_end(Draft& draft, const Vocab& vocab);

// Writes down what went wrong with a drafter, in a sentence.
void record_error(Sequence& sequence, const std::string& message);

// Calls a drafter about one sequence; what it throws as an Error is written down, no more.
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
