#pragma once

#include <span>

#include "draft/draft.h"
#include "specllama/types.h"

namespace specllama {

// A sequence that wants a draft, and the place for it.
struct Proposal {
    SequenceId sequence = 0;
    // All its committed tokens, prompt included; the last one is the one to continue.
    TokenSpan tokens;
    int max_tokens = 0;
    // Empty on entry. At most max_tokens tokens, each a valid id; empty is a legal answer.
    Draft draft;
};

// The seam every drafter sits behind. A drafter serves several sequences, each between its begin
// and its end; it need not be asked every round, so it follows a sequence by its tokens.
//
// What a drafter throws as a specllama::Error is recorded in the statistics and the round goes
// plain; anything else ends the generation. Calls come from one thread at a time.
class Drafter {
 public:
    Drafter() = default;
    Drafter(const Drafter&) = delete;
    Drafter& operator=(const Drafter&) = delete;
    virtual ~Drafter() = default;

    // A new request. Whatever was known of this sequence id before is void.
    virtual void begin(SequenceId /*sequence*/, TokenSpan /*prompt*/) {}

    virtual void propose(std::span<Proposal> proposals) = 0;

    // What the target made of a draft: its first n_accepted tokens were right, then came `next`.
    // Not called for rounds without a draft.
    virtual void observe(SequenceId /*sequence*/, const Draft& /*draft*/, int /*n_accepted*/,
                         Token /*next*/) {}

    // The request is over.
    virtual void end(SequenceId /*sequence*/) {}
};

}  // namespace specllama
