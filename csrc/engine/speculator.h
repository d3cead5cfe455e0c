#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "draft/constraint/grammar_drafter.h"
#include "draft/tree.h"
#include "engine/joined_draft.h"
#include "engine/sequence.h"
#include "engine/target.h"
#include "plan/planner.h"
#include "specllama/drafter.h"
#include "specllama/types.h"
#include "system/clock.h"
#include "text/vocabulary.h"

namespace specllama {

// Decides what is verified: asks the drafters, has the planner decide how much of which draft pays,
// and tells both what became of the drafts.
//
// The tokens that a request's grammar forces are drafted first. With a fixed spec_length, all other
// drafters continue from them. Otherwise they stand beside the other drafts, and the first drafter,
// if it is cheap, drafts a second time, from where they end.
//
// With a fixed spec_length, one draft is verified as it comes: the costly drafter's if there is a
// costly drafter, or else that of the first drafter that has one. Beside a costly drafter, the
// others are asked only if drafts are trees: their drafts then stand beside its own, or in its
// place if it has none. Without a fixed spec_length, the planner chooses among the drafts of all
// drafters, for all sequences at once. The costly drafter is asked last, and asks before each token
// whether to go on. It is told what was chosen of the cheap drafts, since it drafts such tokens
// faster. Its draft then takes the place of theirs; what one of these has behind the costly
// drafter's last token is appended.
//
// A request that brings its draft has that one verified as it is; nobody is asked, and nothing is
// planned.
//
// A drafter that fails never ends a generation: its error is recorded, and the round does without
// its draft.
class Speculator {
 public:
    // drafters: none: plain decoding; at most one of them is costly, the last.
    // limits: of a draft that is verified; one sibling: drafts are chains.
    // planner: new; of a split memory, drafts are chains.
    // takes_guesses: whether the costly drafter can use what others have drafted.
    Speculator(std::vector<std::shared_ptr<Drafter>> drafters, std::optional<int> spec_length,
               const Tree::Limits& limits, const Vocabulary& vocab, Planner planner,
               bool takes_guesses = true);

    bool speculates() const { return !drafters_.empty(); }
    // Whether lengths are planned.
    bool plans() const { return speculates() && !spec_length_; }
    Planner& planner() { return planner_; }
    std::span<const std::shared_ptr<Drafter>> drafters() const { return drafters_; }
    // Most tokens in a row of a draft.
    int longest() const { return spec_length_.value_or(kMaxSpecLength); }
    DraftLimits most() const { return {longest(), limits_.nodes}; }
    const Tree::Limits& limits() const { return limits_; }

    // A sequence enters with its prompt, and leaves. reference: a text to draft from.
    void begin(Sequence& sequence, TokenSpan reference);
    void end(Sequence& sequence);

    // Chooses the drafts of a round. limits[i]: of sequences[i]. overhead: seconds that the round
    // takes besides drafts and decode.
    void propose(std::span<Sequence* const> sequences, std::span<const DraftLimits> limits,
                 double overhead);

    // The draft to verify for sequences[i]. Valid until the next propose.
    const Tree& draft(std::size_t i) const { return work_[i].verified; }

    // By how many rows the decode of this round, of all sequences, should be padded: see
    // WidthChange.
    int n_padding() const { return turns_.empty() ? 0 : turns_.front().choice.n_padding; }

    // The planner learns from a decode of the target if plans().
    void observe_decode(const Decode& decode) {
        if (plans()) planner_.cost().observe(decode.n_rows, decode.n_context, decode.seconds);
    }

    // What came of draft(i), for statistics, trace, planner and drafters. path: the accepted nodes,
    // each the child of the one before; heard: what the target said, their tokens and the one
    // behind them, unless the round broke off. seconds: of the decode, for the trace; 0: not known.
    void observe(std::size_t i, Sequence& sequence, std::span<const int> path, TokenSpan heard,
                 double seconds);

    // The token that the target must choose next, since the sequence's grammar leaves no other;
    // kNoToken: none is known.
    Token forced_token(Sequence& sequence);

 private:
    // The state of one sequence in this round.
    struct Work {
        bool replays = false;             // whether the sequence continues past end tokens
        std::vector<JoinedDraft> joined;  // [row of proposals_]
        std::vector<bool> kept;           // [node of the chosen tree]: whether it is verified
        Tree verified;
        std::vector<Token> guess;  // what the costly drafter is told
        // Tokens of other drafts in the costly drafter's draft: n_prefix, which a grammar forces,
        // before its own tokens, and n_rest behind them.
        int n_prefix = 0;
        int n_rest = 0;
        std::function<bool(const Draft&)> another;  // whether the costly drafter should draft on
    };

    // Rows of proposals_ behind those of the drafters: what the grammars force, and what the first
    // drafter drafts from there.
    std::size_t forced() const { return drafters_.size(); }
    std::size_t beyond() const { return drafters_.size() + 1; }
    Drafter& drafter(std::size_t row);

    void ask_all(std::span<Sequence* const> sequences);
    void take_given(std::size_t i, const Sequence& sequence, DraftLimits limit);
    void prepare(std::size_t row, std::span<Sequence* const> sequences);
    void go_on_from_forced(std::size_t row, std::span<Sequence* const> sequences);
    double ask(std::size_t row, std::span<Sequence* const> sequences);
    bool ask_costly(std::span<Sequence* const> sequences);
    void tell_chosen(std::size_t i);
    bool another(std::size_t i, const Draft& draft);
    void choose(std::span<Sequence* const> sequences, const Tree::Limits& limits);
    void list_candidates(std::size_t i, Tree::Limits limits);
    void take_first(Turn& turn) const;
    void keep(std::size_t i, const Tree::Limits& limits);
    void judge(std::size_t i, TokenSpan heard);
    void tell(std::size_t i, Sequence& sequence, std::span<const int> path, TokenSpan heard);

    std::vector<std::shared_ptr<Drafter>> drafters_;
    std::unique_ptr<GrammarDrafter> grammar_;
    std::optional<int> spec_length_;
    Tree::Limits limits_;
    const Vocabulary* vocab_;
    Planner planner_;
    bool takes_guesses_;
    Stopwatch asked_;  // since a drafter was last asked
    // Kept between rounds so that none allocates.
    std::vector<std::vector<Proposal>> proposals_;  // [row][i]
    std::vector<Turn> turns_;                       // [i]
    std::vector<Work> work_;                        // [i]
    std::vector<const Draft*> beside_;              // [row]: drafts for one sequence
    Draft told_;                                    // what the drafters are told: a trunk
    Tree given_;                                    // the draft that a request brings
};

}  // namespace specllama
