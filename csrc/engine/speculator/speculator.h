#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "draft/constraint/grammar_drafter.h"
#include "draft/core_drafter.h"
#include "draft/tree.h"
#include "engine/sequence.h"
#include "engine/target/target.h"
#include "plan/cost_curve.h"
#include "plan/planner.h"
#include "specllama/types.h"
#include "system/clock.h"
#include "text/vocabulary.h"

namespace specllama {

// Decides what is verified: asks the drafters, chooses among their drafts, and notifies them of the
// results. A subclass is the policy of choosing: PlannedSpeculator or FixedSpeculator.
//
// The tokens that a request's grammar forces are drafted first. If a request has its own draft,
// that one is verified unchanged: no drafter is asked, and nothing is planned.
//
// A drafter's failure never ends a generation: the error is recorded, and the round continues
// without its draft.
class Speculator {
 public:
    using Drafters = std::vector<std::shared_ptr<CoreDrafter>>;

    // drafters: if empty, decoding is plain; only the last one may have a step cost. longest: most
    // tokens in a row of a draft. limits: of a verified draft; one sibling: drafts are chains.
    // vocab must outlive this.
    Speculator(Drafters drafters, int longest, const Tree::Limits& limits, const Vocabulary& vocab);
    Speculator(const Speculator&) = delete;
    Speculator& operator=(const Speculator&) = delete;
    virtual ~Speculator() = default;

    bool speculates() const { return !drafters_.empty(); }
    std::span<const std::shared_ptr<CoreDrafter>> drafters() const { return drafters_; }
    // Whether there is a drafter with a step cost, and whether there is one without.
    bool drafts_by_model() const { return speculates() && drafters_.back()->has_step_cost(); }
    bool drafts_by_ngram() const { return speculates() && !drafters_.front()->has_step_cost(); }
    const Tree::Limits& tree_limits() const { return limits_; }
    // Maximum number of tokens of a draft.
    DraftLimits limits() const { return {longest_, limits_.nodes}; }

    // The planner of draft lengths; null: none.
    virtual Planner* planner() { return nullptr; }
    // The cost curves that it learns: of the target's decodes, then of the draft model's; empty:
    // none.
    virtual std::vector<CostCurve*> curves() { return {}; }

    // A sequence enters with its prompt, and leaves. reference: a text to draft from.
    virtual void begin(Sequence& sequence, TokenSpan reference);
    virtual void end(Sequence& sequence);

    // Chooses the drafts of a round. limits[i]: of sequences[i]. overhead: seconds that the round
    // takes besides drafts and decode.
    void propose(std::span<Sequence* const> sequences, std::span<const DraftLimits> limits,
                 double overhead);
    // The draft to verify for sequences[i]. Valid until the next call of propose.
    const Tree& draft(std::size_t i) const { return verified_[i]; }
    // Number of rows by which this round's decode of all sequences should be padded (see
    // WidthSwitch).
    virtual int n_padding() const { return 0; }

    // Learns from a decode of the target.
    virtual void observe_decode(const Decode& /*decode*/) {}
    // Passes the result of draft(i) to statistics, trace, policy and drafters.
    void observe(std::size_t i, const Verification& result);

    // The token that the target must choose next, because the sequence's grammar allows no other;
    // kNoToken: none is known.
    Token forced_token(Sequence& sequence);

 protected:
    // Rows of proposals_ after those of the drafters: the tokens that grammars force, and the first
    // drafter's draft after these.
    std::size_t forced() const { return drafters_.size(); }
    std::size_t after_forced() const { return drafters_.size() + 1; }
    CoreDrafter& drafter(std::size_t row);

    // The policy. begin_round: prepares its own state. limit: sets max_drawn and max_alternatives
    // of a proposal. ask_all: asks the drafters and sets verified_. expected: the expectation of
    // draft(i); null: none. learn: from the result of draft(i).
    virtual void begin_round(std::span<Sequence* const> /*sequences*/) {}
    virtual void limit(DraftRequest& proposal, const CoreDrafter& from) const;
    virtual void ask_all(std::span<Sequence* const> sequences) = 0;
    virtual const Choice* expected(std::size_t /*i*/) const { return nullptr; }
    virtual void learn(std::size_t /*i*/, const Verification& /*result*/) {}

    // Asks a row's drafter for drafts of all sequences at once. Returns the seconds it took.
    double ask(std::size_t row, std::span<Sequence* const> sequences);
    // Asks a row's drafter to continue from the tokens that grammars force. In row `after_forced`,
    // only for sequences that have such tokens. Proposals that add nothing to them are emptied.
    void ask_after_forced(std::size_t row, std::span<Sequence* const> sequences);
    // All drafts for a sequence, [row]. Valid until the next call.
    std::span<const SampledDraft* const> drafts(std::size_t i);
    // Makes nodes of a tree the draft to verify: those in `rows`, or all.
    void keep(std::size_t i, const Tree& tree, std::span<const int> rows);
    void keep_all(std::size_t i, const Tree& tree);

    const Vocabulary& vocab() const { return *vocab_; }
    std::vector<std::vector<DraftRequest>> proposals_;  // [row][i]
    std::vector<RoundRequest> requests_;                // [i]
    std::vector<Tree> verified_;                        // [i]
    Stopwatch asked_;                                   // since a drafter was last asked

 private:
    void prepare(std::size_t row, std::span<Sequence* const> sequences);
    void take_given(std::size_t i, const Sequence& sequence, DraftLimits most);
    void notify(const Verification& result);

    Drafters drafters_;
    int longest_;
    Tree::Limits limits_;
    const Vocabulary* vocab_;
    std::unique_ptr<GrammarDrafter> grammar_;
    // Kept between rounds so that none allocates.
    std::vector<const SampledDraft*> drafts_;  // [row]: for one sequence
    std::vector<bool> kept_;                   // [node]
    SampledDraft draft_;                       // of which a part is or was verified
    Tree given_;                               // the request's own draft
};

}  // namespace specllama
