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

// Drafts with a smaller model of the same vocabulary, token by token. It uses the target's choice
// rule and noise, so that equal distributions give equal choices.
//
// Its KV memory follows the sequence: it is filled at the first draft and cut back to the accepted
// prefix, so accepted tokens are decoded only once. (Leviathan et al. 2023, section 2.3, with lazy
// prefill; the coupling is Daliri et al. 2024.) The memory of a request is kept for the next
// request, which may have the same beginning.
//
// Tokens that other drafters expect (DraftRequest::candidates) are processed with the text: if the
// model makes the same choices, one decode drafts many tokens. (Speculative decoding of the draft
// model itself, staged as in Spector & Re 2023.)
//
// One decode drafts one token for each sequence. If it fails, all of them get the error. A single
// sequence processes all its missing tokens before it drafts. Several sequences process one batch
// per round, and those that still lack more than their part of a batch do not draft in that round.
class ModelDrafter final : public CoreDrafter {
 public:
    // model: has the target's vocabulary. longest: most tokens of a draft. Throws InvalidArgument,
    // OutOfMemory, or ModelError when `model` cannot draft.
    ModelDrafter(std::shared_ptr<const Model> model, const DraftPlan& plan, int longest);

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<DraftRequest> proposals) override;

    bool has_step_cost() const override { return true; }
    int n_unprocessed(SequenceId sequence, int n_tokens) const override;

    Context& context() { return context_; }

 private:
    struct Follower {
        std::vector<Token> tokens;  // tokens of the sequence, then of the draft
        int n_followed = 0;         // leading tokens that are certainly the sequence's
        int n_cached = 0;           // leading tokens in the KV memory
        int row = 0;  // batch row of the logits after the last token before any candidates

        int n_pending() const { return static_cast<int>(tokens.size()) - n_cached; }
    };
    // A draft in progress.
    struct Drafting {
        DraftRequest* proposal;
        Follower* follower;
        int n_now;             // tokens of its sequence in the next decode
        int n_candidates = 0;  // of these, the last ones, which are candidates
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
