#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/speculator/joined_draft.h"
#include "engine/speculator/speculator.h"
#include "plan/planner.h"

namespace specllama {

// Has a planner choose how much of which draft is verified, for all sequences at once.
//
// What a grammar forces is one draft among the others, and the first drafter, if it takes no steps,
// drafts a second time, after these tokens. A drafter that takes a step for each token is asked
// last, and asks before each token whether to go on. It is given what was chosen of the other
// drafts, since it drafts such tokens faster. Its draft then takes the place of theirs; what one of
// these has after the end of its draft is appended. But a drafter of blocks makes all tokens of a
// draft in one step, and its draft is one among the others.
class PlannedSpeculator final : public Speculator {
 public:
    // planner: new. checks_candidates: whether the sequential drafter can use what others have
    // drafted.
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
    // What a sequence's part of this round needs in addition to its request and plan.
    struct Work {
        bool replays = false;             // whether the sequence continues past end tokens
        std::vector<JoinedDraft> joined;  // [row of proposals_]
        std::vector<int> n_shared;        // [row]: first tokens that an earlier row has
        std::vector<Token> candidates;    // what the sequential drafter is given
        // Tokens of other drafts in the sequential drafter's draft: n_prefix, which a grammar
        // forces, before its own tokens, and n_rest after them.
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
