#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "device/context_plan.h"
#include "draft/core_drafter.h"
#include "draft/model/draft_sampler.h"
#include "runtime/batch.h"
#include "runtime/context.h"
#include "runtime/model.h"

namespace specllama {

// Drafts with a smaller model of the same vocabulary, token by token, with the target's choice rule
// and noise: where the two distributions agree, so do the choices.
//
// Its KV memory follows the sequence: it is filled at the first draft and cut back to the accepted
// prefix, and no token is decoded again unless it was rejected in between. (Leviathan et al. 2023,
// section 2.3, with lazy prefill; the coupling is Daliri et al. 2024.) What a request leaves in the
// memory stays for the next request, which may begin alike.
//
// What others expect next (DraftRequest::candidates) is taken in with the text: where its own
// choices are the same, one decode drafts many tokens. (Speculative decoding of the draft model
// itself; staged as in Spector & Re 2023.)
//
// Several sequences draft one token each per decode; a decode that fails is an error of them all. A
// lone sequence decodes all tokens that its memory lacks in one go. Several decode one batch per
// round, and those that still lack more than their quota of a batch do not draft in that round.
class ModelDrafter final : public CoreDrafter {
 public:
    // model: of the target's vocabulary. longest: most tokens of a draft.
    // Throws InvalidArgument and OutOfMemory; ModelError when `model` cannot draft.
    ModelDrafter(std::shared_ptr<const Model> model, const DraftPlan& plan, int longest);

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<DraftRequest> proposals) override;

    bool has_step_cost() const override { return true; }
    int n_unprocessed(SequenceId sequence, int n_tokens) const override;

    Context& context() { return context_; }

 private:
    struct Follower {
        std::vector<Token> tokens;  // of the sequence, then of the draft
        int n_followed = 0;         // leading tokens, sure to be the sequence's
        int n_cached = 0;           // leading tokens that are in the KV memory
        int row = 0;                // batch row with the logits after the last token for sure

        int n_pending() const { return static_cast<int>(tokens.size()) - n_cached; }
    };
    // A draft under way.
    struct Drafting {
        DraftRequest* proposal;
        Follower* follower;
        int n_now;             // tokens of its sequence in the next decode
        int n_candidates = 0;  // of these, the last ones, which are guesses
    };

    static int n_common(const Follower& follower, TokenSpan prompt);
    void reuse(SequenceId sequence, TokenSpan prompt);
    void follow(const DraftRequest& proposal, Follower& follower);
    void prefill(int quota);
    void add_candidates(int quota);
    void draft();
    bool extend(Drafting& drafting);
    void decode();

    DraftSampler sampler_;
    Context context_;
    Batch batch_;
    std::map<SequenceId, Follower> followers_;
    std::vector<Drafting> drafting_;  // kept so that no draft allocates
};

}  // namespace specllama
