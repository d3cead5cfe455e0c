#pragma once

#include <functional>
#include <span>
#include <string>

#include "specllama/draft.h"
#include "specllama/types.h"

namespace specllama {

// A sequence that needs a draft, and the place for the draft.
struct Proposal {
    SequenceId sequence = 0;
    // All committed tokens, prompt included; the draft continues from the last one.
    TokenSpan tokens;
    int max_tokens = 0;
    // Most candidates for a position besides that of the main path; further ones are dropped.
    int max_alternatives = 0;
    // If not empty, a drafter with a step cost calls this before each token with its draft so far,
    // and stops if it returns false.
    std::function<bool(const Draft&)> keep_drafting;
    // On entry: empty, or tokens to continue from. The main path and each branch may have at most
    // max_tokens tokens, those included. All ids must be valid. Adding none is allowed.
    Draft draft;
    // The error of this proposal, in one sentence. The draft is then discarded.
    std::string error;

    // Whether another token fits, and keep_drafting allows it.
    bool wants_more() const {
        return draft.size() < max_tokens && (!keep_drafting || keep_drafting(draft));
    }
};

// The interface of a drafter of your own:
//
//     class Repeat final : public Drafter {
//      public:
//         void propose(std::span<Proposal> proposals) override {
//             for (Proposal& p : proposals)
//                 if (p.max_tokens > 0) p.draft.push(p.tokens.back(), {.confidence = 0.5f});
//         }
//     };
//     Session session(options, std::make_shared<Repeat>());
//
// A drafter can make a generation slow, never wrong. It serves several sequences, each from begin()
// to end(). It is not called in every round, so it must follow a sequence by its tokens, which only
// grow within a request.
//
// An error of one proposal goes into Proposal::error and affects no other. A specllama::Error that
// a drafter throws affects all sequences of the call. Either is recorded in their statistics, and
// the round continues without this drafter's draft for them. Any other exception reaches the caller
// of the session. Calls come from one thread at a time.
class Drafter {
 public:
    Drafter() = default;
    Drafter(const Drafter&) = delete;
    Drafter& operator=(const Drafter&) = delete;
    virtual ~Drafter() = default;

    // A new request begins; forget what is known about this sequence id. reference: another text to
    // draft from, valid only during this call.
    virtual void begin(SequenceId /*sequence*/, TokenSpan /*prompt*/, TokenSpan /*reference*/) {}

    virtual void propose(std::span<Proposal> proposals) = 0;

    // The result of a verification: the target accepted the first n_accepted tokens of the main
    // path, and `next` follows them, possibly from a branch. `draft` is the verified main path,
    // from any drafter. Not called for a round without a draft or for the round that ends the
    // generation.
    virtual void observe(SequenceId /*sequence*/, const Draft& /*draft*/, int /*n_accepted*/,
                         Token /*next*/) {}

    // Whether each draft token takes time, as with a draft model. A session can have one such
    // drafter. The result must never change.
    virtual bool has_step_cost() const { return false; }

    // For a drafter with a step cost: how many tokens of a sequence of n_tokens, not counting the
    // last one, it must process before it can draft.
    virtual int n_unprocessed(SequenceId /*sequence*/, int /*n_tokens*/) const { return 0; }

    // The request is over.
    virtual void end(SequenceId /*sequence*/) {}
};

}  // namespace specllama
