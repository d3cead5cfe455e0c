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

// The engine's request to a drafter: a Proposal, and what only the library's own drafters receive.
struct DraftRequest {
    SequenceId sequence = 0;
    // The text, without its images and sounds, which drafters do not read.
    TokenSpan tokens;
    int n_media = 0;  // positions of images and sounds in the target's memory
    int max_tokens = 0;
    int max_alternatives = 0;
    // Maximum number of tokens of a draft with tokens drawn from distributions. Such a draft is
    // verified as a whole or not at all, and this choice must not depend on the drawn tokens or
    // their number.
    int max_drawn = 0;
    // For a drafter with a step cost, see Proposal; null: every token is wanted.
    const std::function<bool(const SampledDraft&)>* keep_drafting = nullptr;
    // For a drafter with a step cost: tokens that other drafters expect after those of `draft`. The
    // drafter can process them together with the text at little cost, and draft those that it would
    // choose itself.
    TokenSpan candidates;
    // The request's choice rule. A drafter that uses Sampler::draft agrees with the target as often
    // as possible.
    Sampler* sampler = nullptr;
    // See GenerateOptions::memory_owner; -1: none.
    int memory_owner = -1;
    // If tokens are drawn for rejection sampling, the length of the draft must not depend on the
    // token drawn last: a draft that leaves out a token because of its value would bias the output.
    SampledDraft draft;
    // Tokens decoded by a draft model, for the statistics.
    int n_decoded = 0;
    std::string error;

    // The tokens of the sequence and then of the draft. With a draft, only the last kMaxMatch
    // tokens of the sequence. Valid until `buffer` changes.
    TokenSpan with_draft(std::vector<Token>& buffer) const;

    // Whether the draft has room for another token, and one is wanted.
    bool wants_more() const {
        return draft.size() < max_tokens && (keep_drafting == nullptr || (*keep_drafting)(draft));
    }
};

// The interface of all drafters to the engine. The functions are those of Drafter.
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
    // For a drafter with a step cost: tokens per step. If more than 1, a draft has one step.
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
    std::vector<Proposal> proposals_;  // kept to avoid allocations
    SampledDraft so_far_;
};

}  // namespace specllama
