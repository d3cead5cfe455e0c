#pragma once

#include <algorithm>
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
#include "runtime/context.h"
#include "runtime/drafting/head_context.h"
#include "runtime/model.h"

namespace specllama {

// Drafts with a head: one or a few layers that continue from the target's hidden states, token by
// token, with the target's choice rule and noise. The head is an EAGLE-3 file (Li et al. 2025) or
// layers of multi-token prediction (DeepSeek-V3, 2024, section 2.2), in the target's file or in
// another one.
//
// A head decodes pairs: a token and the state before it. Up to the target's last decoded token the
// states are the target's; after it they are the head's own. States are ingested before a draft, or
// when they fill a batch. The memory of a request is kept for the next request with the same
// beginning. Tokens whose states were not seen, such as those of a loaded KV memory, are skipped;
// this only makes drafts worse.
//
// Several layers of multi-token prediction form a chain: each drafts one token from the state of
// the previous layer. All of them ingest all pairs, as in llama.cpp.
//
// One decode drafts one token for each sequence. If it fails, all of them get the error.
class HeadDrafter final : public CoreDrafter, public StateReader {
 public:
    // head: header of the head's file; null: the head is part of the target's file and loaded with
    // it. Throws InvalidArgument, or ModelError when the head cannot draft for the target.
    HeadDrafter(const std::shared_ptr<const Model>& target, const DraftPlan& plan,
                const Header* head, const ProgressFunction& progress);

    void attach(Context& target) override;
    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void process(SequenceId sequence, TokenSpan tokens, Position first,
                 std::span<const int> rows) override;
    void propose(std::span<DraftRequest> proposals) override;

    bool has_step_cost() const override { return true; }
    int n_unprocessed(SequenceId sequence, int n_tokens) const override;

 private:
    // The head's state of a sequence. The last states seen wait for their pairs to be decoded:
    // first the known states, then those of which only the target's features are known. The last
    // one always waits for the token after it.
    struct Follower : SeenTokens {
        std::vector<Position> pairs;  // [i]: sequence position of the state in the memory's pair i
        std::vector<float> states;    // [n_known][n_state]
        std::vector<float> features;  // [n_raw][n_features]
        int n_known = 0;
        int n_raw = 0;
        std::vector<float> chain;  // [layer][n_state]: of the draft, for the next layer

        int n_waiting() const { return n_known + n_raw; }
        int n_pairs() const { return static_cast<int>(pairs.size()); }
        // Position of the first waiting state.
        Position first() const { return n_seen - n_waiting(); }
        int n_copyable(TokenSpan prompt) const { return std::min(n_common(prompt), first()); }
    };
    // A draft in progress.
    struct Drafting {
        DraftRequest* proposal;
        Follower* follower;
        int row;  // batch row of the logits after its last token
    };

    void reuse(SequenceId sequence, TokenSpan prompt);
    void keep(SequenceId sequence, Follower& follower, int n);
    void encode(Follower& follower);
    int ingest(SequenceId sequence, Follower& follower);
    int add_waiting(SequenceId sequence, const Follower& follower, int n, bool logits);
    void waiting_decoded(Follower& follower);
    void start(std::span<DraftRequest> proposals);
    void draft();
    void add_step(Drafting& one, int step);
    bool is_chain() const { return context_->n_layers() > 1; }
    float* state(Follower& follower, int i) const;

    DraftSampler sampler_;
    ContextOptions context_options_;
    std::shared_ptr<const Model> head_;
    HeadContext::Kind kind_ = HeadContext::Kind::mtp;
    std::vector<int>
        layers_;  // layers of the target whose inputs are read; empty: its last state is read
    Context* target_ = nullptr;
    std::optional<HeadContext> context_;
    std::map<SequenceId, Follower> followers_;
    std::vector<Drafting> drafting_;  // kept so that no draft allocates
};

}  // namespace specllama
