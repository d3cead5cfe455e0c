#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/speculator/joined_draft.h"
#include "engine/speculator/speculator.h"
#include "plan/planner.h"

namespace specllama {

// Lets a planner choose how much of which draft is verified, for all sequences at once.
//
// The tokens that a grammar forces are one of the drafts. The first drafter, if it has no step
// cost, drafts a second time after these tokens. A drafter with a step cost is asked last, and asks
// before each token whether to continue. It is given the chosen part of the other drafts, because
// it drafts such tokens faster. Its draft then replaces theirs; if one of them continues after its
// end, that rest is appended. The draft of a block drafter, which makes all its tokens in one step,
// competes with the others instead.
class PlannedSpeculator final : public Speculator {
 public:
    // planner: new. checks_candidates: whether the sequential drafter can use the tokens of other
    // drafts.
    PlannedSpeculator(Drafters drafters, int longest, const Tree::Limits& limits,
                      const Vocabulary& vocab, Planner planner, bool checks_candidates);

    Planner* planner() override { return &planner_; }
    std::vector<CostCurve*> curves() override {
        return {&planner_.curves().first(), &planner_.draft_cost().curves().first()};
    }
    void begin(Sequence& sequence, TokenSpan reference) override;
    void end(Sequence& sequence) override;
    int n_padding() const override;
    void observe_decode(const Decode& decode) override;

 private:
    // Data of a sequence in this round in addition to its request and plan.
    struct Work {
        bool replays = false;             // the sequence continues past end tokens
        std::vector<JoinedDraft> joined;  // [row of proposals_]
        std::vector<int> n_shared;        // [row]: leading tokens that an earlier row has
        std::vector<Token> candidates;    // given to the sequential drafter
        // Tokens of other drafts in the sequential drafter's draft: n_prefix before its own tokens,
        // which a grammar forces, and n_rest after them.
        int n_prefix = 0;
        int n_rest = 0;
        std::function<bool(const SampledDraft&)> keep_drafting;
    };

    void begin_round(std::span<Sequence* const> sequences) override;
    void limit(DraftRequest& proposal, const CoreDrafter& from) const override;
    void ask_all(std::span<Sequence* const> sequences) override;
    const Choice* expected(std::size_t i) const override { return &plans_[i].choice; }
    void learn(std::size_t i, const Verification& result) override;
    bool drafts_blocks() const { return drafters().back()->tokens_per_step() > 1; }
    bool ask_sequential(std::span<Sequence* const> sequences);
    void share_with_earlier(std::size_t row);
    void give_chosen(std::size_t i);
    bool keep_drafting(std::size_t i, const SampledDraft& draft);
    void choose(std::span<Sequence* const> sequences, const Tree::Limits& limits);
    void list_candidates(std::size_t i, Tree::Limits limits);
    void keep_chosen(std::size_t i, const Tree::Limits& limits);

    Planner planner_;
    bool checks_candidates_;
    std::vector<RoundPlan> plans_;  // [i]
    std::vector<Work> work_;        // [i]
    RoundOutcome outcome_;
};

}  // namespace specllama
