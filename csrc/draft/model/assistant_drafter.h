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

// Drafts with an assistant (Gemma 4): a small model that goes on from the target's last state, and
// whose layers attend to the target's own KV memory. It has no memory, so it takes in nothing; all
// tokens of a draft have the position of the first, as it was trained (transformers' documentation
// of gemma4_assistant).
//
// Sequences draft one after another: with several, a target with windows keeps their memories
// apart.
class AssistantDrafter final : public CoreDrafter, public StateReader {
 public:
    // assistant: header of its file. Throws InvalidArgument; ModelError when it cannot draft for
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
    // The last state that was seen of a sequence.
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
    std::vector<Token> tokens_;  // of the sequence, then of the draft
};

}  // namespace specllama
