#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/context_plan.h"
#include "draft/core_drafter.h"
#include "draft/head/seen_tokens.h"
#include "draft/head/state_reader.h"
#include "draft/model/draft_sampler.h"
#include "gguf/block_file.h"
#include "runtime/context.h"
#include "runtime/drafting/block_context.h"
#include "runtime/model.h"

namespace specllama {

// Drafts several tokens in one decode. The model attends to the target's hidden states of the text
// and fills in a block of masks after it (DFlash, DFlash2, DSpark). Tokens are chosen with the
// target's choice rule and noise.
//
// States are ingested before a draft, or when they fill a batch. The memory of a request is kept
// for the next request with the same beginning. Tokens whose states were not seen, such as those of
// a loaded KV memory, are skipped; this only makes drafts worse.
//
// One decode drafts for all sequences. If it fails, all of them get the error.
class BlockDrafter final : public CoreDrafter, public StateReader {
 public:
    // model: header of the block drafter's file. longest: most tokens of a draft. Throws
    // InvalidArgument, or ModelError when the model cannot draft for the target.
    BlockDrafter(const std::shared_ptr<const Model>& target, const DraftPlan& plan,
                 const Header& model, int longest, const ProgressFunction& progress);

    void attach(Context& target) override;
    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void process(SequenceId sequence, TokenSpan tokens, Position first,
                 std::span<const int> rows) override;
    void propose(std::span<DraftRequest> proposals) override;

    bool has_step_cost() const override { return true; }
    int tokens_per_step() const override { return n_draft_; }
    int n_unprocessed(SequenceId sequence, int n_tokens) const override;

 private:
    // The drafter's state of a sequence. The last states seen wait to be ingested.
    struct Follower : SeenTokens {
        std::vector<Position> held;  // [i]: sequence position of the memory's state i
        std::vector<float> waiting;  // [n_waiting][n_features]
        int n_waiting = 0;

        int n_held() const { return static_cast<int>(held.size()); }
        // Position of the first waiting state.
        Position first() const { return n_seen - n_waiting; }
        int n_copyable(TokenSpan prompt) const { return n_common(prompt); }
    };
    // A draft in progress.
    struct Drafting {
        DraftRequest* proposal;
        Follower* follower;
        int row;  // batch row of its first token
    };

    void reuse(SequenceId sequence, TokenSpan prompt);
    void keep(SequenceId sequence, Follower& follower, int n);
    void add_waiting(SequenceId sequence, const Follower& follower);
    void taken_in(Follower& follower);
    void ingest(SequenceId sequence, Follower& follower);
    void start(std::span<DraftRequest> proposals);
    void draft();

    DraftSampler sampler_;
    ContextOptions context_options_;
    BlockFormat format_;
    int n_draft_;  // tokens of a draft
    std::shared_ptr<const Model> model_;
    Context* target_ = nullptr;
    std::optional<BlockContext> context_;
    std::map<SequenceId, Follower> followers_;
    std::vector<Drafting> drafting_;  // kept so that no draft allocates
};

}  // namespace specllama
