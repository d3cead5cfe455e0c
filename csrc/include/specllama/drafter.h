#pragma once

#include <functional>
#include <span>
#include <string>

#include "specllama/draft.h"
#include "specllama/types.h"

namespace specllama {

// The library's own: how a request's tokens are chosen.
class Sampler;

// A sequence that wants a draft, and the place for it.
struct Proposal {
    SequenceId sequence = 0;
    // All its committed tokens, prompt included; the last one is the one to continue.
    TokenSpan tokens;
    int max_tokens = 0;
    // Of a drafter that takes no time, how many of a draft may be drawn from a distribution: all of
    // those will be verified, whatever they are. More than these must not be drawn.
    int max_drawn = 0;
    // Most guesses beside the trunk's at a position; more are left out.
    int max_beside = 0;
    // Where not null, a costly drafter asks before each token whether to go on, with its draft so
    // far.
    const std::function<bool(const Draft&)>* another = nullptr;
    // For the library's own drafters: the request's choice rule; a drafter whose tokens come from
    // its `draft`, too, agrees with the target as often as can be.
    Sampler* sampler = nullptr;
    // On entry empty, or tokens to go on from. At most max_tokens tokens, those included, each a
    // valid id, in the trunk and along each branch; to add none is a legal answer. Where tokens are
    // drawn for rejection sampling, how many there are must not depend on which were drawn last: a
    // draft that ends before a token because of that very token would distort the output.
    Draft draft;
    // Tokens that a draft model decoded for it, for the statistics.
    int n_decoded = 0;
    // What went wrong with it, in a sentence; then the draft is void.
    std::string error;

    // Whether there is room for another token, and it is wanted.
    bool wants_more() const {
        return draft.size() < max_tokens && (another == nullptr || (*another)(draft));
    }
};

// The seam every drafter sits behind; also one of your own:
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
// It can make a generation slow, never wrong. A drafter serves several sequences, each between its
// begin and its end; it need not be asked every round, so it follows a sequence by its tokens,
// which only grow within a request.
//
// What goes wrong with one proposal is said there and concerns no other. What a drafter throws as a
// specllama::Error concerns all sequences of the call: it is recorded in their statistics, as the
// former is, and the round goes plain for them. Anything else ends the generation. Calls come from
// one thread at a time.
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

    // What the target made of a draft: the first n_accepted tokens of its trunk were right, then
    // came `next`, from a branch beside it, perhaps. Not called for rounds without a draft.
    virtual void observe(SequenceId /*sequence*/, const Draft& /*draft*/, int /*n_accepted*/,
                         Token /*next*/) {}

    // Whether each token of a draft takes time, as those of a model do. A session has room for one
    // such drafter; it must always answer the same.
    virtual bool costly() const { return false; }

    // Of a costly one: tokens of a sequence with n_tokens that it has to take in beside the last
    // one before it drafts.
    virtual int n_behind(SequenceId /*sequence*/, int /*n_tokens*/) const { return 0; }

    // The request is over.
    virtual void end(SequenceId /*sequence*/) {}
};

}  // namespace specllama
