#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "draft/sampled_draft.h"
#include "specllama/drafter.h"

namespace specllama {

class Sampler;

// What the engine asks a drafter for: a Proposal, and what only the library's own drafters are
// told.
struct DraftRequest {
    SequenceId sequence = 0;
    // The text. Images and sounds in it are left out: drafters do not read them.
    TokenSpan tokens;
    int n_media = 0;  // positions that these take in the target's memory
    int max_tokens = 0;
    int max_alternatives = 0;
    // Most tokens of a draft of which some are drawn from distributions. It is verified whole or
    // not at all, and which of the two must not depend on the tokens drawn, nor on how many there
    // are.
    int max_drawn = 0;
    // For a drafter with a step cost: see Proposal; null: every token is wanted.
    const std::function<bool(const SampledDraft&)>* keep_drafting = nullptr;
    // For a drafter with a step cost: tokens that others expect after those of `draft`. It may
    // process them with the text and draft, for as long as they are its own choice, at little cost.
    TokenSpan candidates;
    // The request's choice rule. A drafter that chooses tokens by Sampler::draft agrees with the
    // target as often as possible.
    Sampler* sampler = nullptr;
    // Of the sequence, see GenerateOptions::memory_owner; -1: it has none.
    int memory_owner = -1;
    // If tokens are drawn for rejection sampling, the length must not depend on the token drawn
    // last: a draft that ends before a token because of that very token would distort the output.
    SampledDraft draft;
    // Tokens that a draft model decoded; for the statistics.
    int n_decoded = 0;
    std::string error;

    // The sequence's tokens with those of the draft after them; of a text with a draft, only as
    // much as a match can have. Valid until `buffer` changes.
    TokenSpan with_draft(std::vector<Token>& buffer) const;

    // Whether there is room for another token, and it is wanted.
    bool wants_more() const {
        return draft.size() < max_tokens && (keep_drafting == nullptr || (*keep_drafting)(draft));
    }
};

// The seam between the engine and all drafters; each function is as in Drafter.
class CoreDrafter {
 public:
    CoreDrafter() = default;
    CoreDrafter(const CoreDrafter&) = delete;
    CoreDrafter& operator=(const CoreDrafter&) = delete;
    virtual ~CoreDrafter() = default;

    virtual void begin(SequenceId /*sequence*/, TokenSpan /*prompt*/, TokenSpan /*reference*/) {}
    virtual void propose(std::span<DraftRequest> requests) = 0;
    virtual void observe(SequenceId /*sequence*/, const Draft& /*draft*/, int /*n_accepted*/,
                         Token /*next*/) {}
    virtual bool has_step_cost() const { return false; }
    // For a drafter with a step cost: tokens that a step drafts. If there are several, a draft has
    // one step.
    virtual int tokens_per_step() const { return 1; }
    virtual int n_unprocessed(SequenceId /*sequence*/, int /*n_tokens*/) const { return 0; }
    virtual void end(SequenceId /*sequence*/) {}
};

// A drafter from outside the library.
class ExternalDrafter final : public CoreDrafter {
 public:
    explicit ExternalDrafter(std::shared_ptr<Drafter> drafter);

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<DraftRequest> requests) override;
    void observe(SequenceId sequence, const Draft& draft, int n_accepted, Token next) override;
    bool has_step_cost() const override;
    int n_unprocessed(SequenceId sequence, int n_tokens) const override;
    void end(SequenceId sequence) override;

 private:
    std::shared_ptr<Drafter> drafter_;
    std::vector<Proposal> proposals_;  // kept so that none allocates
    SampledDraft so_far_;
};

}  // namespace specllama
