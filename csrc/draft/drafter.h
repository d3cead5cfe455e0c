#pragma once

#include <functional>
#include <span>

#include "draft/draft.h"
#include "specllama/types.h"

namespace specllama {

class Sampler;

// A sequence that wants a draft, and the place for it.
struct Proposal {
    SequenceId sequence = 0;
    // All its committed tokens, prompt included; the last one is the one to continue.
    TokenSpan tokens;
    int max_tokens = 0;
    // Of these, how many may be drawn from a distribution.
    int max_drawn = 0;
    // Where not null, a costly drafter asks before each token whether to go on, with its draft so
    // far.
    const std::function<bool(const Draft&)>* another = nullptr;
    // The request's choice rule; a drafter whose tokens come from its `draft`, too, agrees with the
    // target as often as can be.
    Sampler* sampler = nullptr;
    // Empty on entry. At most max_tokens tokens, each a valid id; empty is a legal answer. Where
    // sampler->rejects(), how many there are must not depend on which tokens were drawn last: a
    // draft that ends before a token because of that very token would distort the output.
    Draft draft;
    // Tokens that a draft model decoded for it, for the statistics.
    int n_decoded = 0;
};

// The seam every drafter sits behind. A drafter serves several sequences, each between its begin
// and its end; it need not be asked every round, so it follows a sequence by its tokens, which only
// grow within a request.
//
// What a drafter throws as a specllama::Error is recorded in the statistics and the round goes
// plain; anything else ends the generation. Calls come from one thread at a time.
class Drafter {
 public:
    Drafter() = default;
    Drafter(const Drafter&) = delete;
    Drafter& operator=(const Drafter&) = delete;
    virtual ~Drafter() = default;

    // A new request. Whatever was known of this sequence id before is void. reference: text that
    // may be drafted from besides the sequence's own; it lives no longer than this call.
    virtual void begin(SequenceId /*sequence*/, TokenSpan /*prompt*/, TokenSpan /*reference*/) {}

    virtual void propose(std::span<Proposal> proposals) = 0;

    // What the target made of a draft: its first n_accepted tokens were right, then came `next`.
    // Not called for rounds without a draft.
    virtual void observe(SequenceId /*sequence*/, const Draft& /*draft*/, int /*n_accepted*/,
                         Token /*next*/) {}

    // Whether each token of a draft takes time, as those of a model do. Its draft may have tokens
    // on entry, to go on from.
    virtual bool costly() const { return false; }

    // The request is over.
    virtual void end(SequenceId /*sequence*/) {}
};

}  // namespace specllama
