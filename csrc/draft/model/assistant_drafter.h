#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/context_plan.h"
#include "draft/core_drafter.h"
#include "draft/head/state_reader.h"
#include "draft/model/draft_sampler.h"
#include "runtime/context.h"
#include "runtime/drafting/head_context.h"
#include "runtime/model.h"

namespace specllama {

// Drafts with an assistant (Gemma 4): a small model that continues from the target's last state and
// attends to the target's KV memory. It has no memory of its own, so it ingests nothing. All tokens
// of a draft have the position of the first, as in its training (transformers' documentation of
// gemma4_assistant).
//
// Sequences draft one after another, because a target with sliding windows has a separate memory
// for each.
class AssistantDrafter final : public CoreDrafter, public StateReader {
 public:
    // assistant: header of its file. Throws InvalidArgument, or ModelError when it cannot draft for
    // the target.
    AssistantDrafter(const std::shared_ptr<const Model>& target, const DraftPlan& plan,
                     const Header& assistant, const ProgressFunction& progress);

    void attach(Context& target) override;
    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void process(SequenceId sequence, TokenSpan tokens, Position first,
                 std::span<const int> rows) override;
    void propose(std::span<DraftRequest> proposals) override;

    bool has_step_cost() const override { return true; }

 private:
    // The last state seen of a sequence.
    struct Seen {
        Position position = -1;
        std::vector<float> state;
    };

    void draft(DraftRequest& proposal, const Seen& seen);

    DraftSampler sampler_;
    std::shared_ptr<const Model> assistant_;
    Context* target_ = nullptr;
    std::optional<HeadContext> context_;
    std::map<SequenceId, Seen> seen_;
    std::vector<Token> tokens_;  // tokens of the sequence, then of the draft
};

}  // namespace specllama
