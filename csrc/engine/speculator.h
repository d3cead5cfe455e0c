#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "draft/grammar_drafter.h"
#include "draft/offers.h"
#include "draft/state_reader.h"
#include "draft/tree.h"
#include "engine/clock.h"
#include "engine/joined_draft.h"
#include "engine/sequence.h"
#include "llama/vocab.h"
#include "plan/planner.h"
#include "specllama/drafter.h"
#include "specllama/types.h"

namespace specllama {

// How much may be drafted for a sequence in a round: tokens in a row, and altogether.
struct Limit {
    int depth = 0;
    int nodes = 0;
};

// What is verified of which draft: asks the drafters, decides how far their drafts pay, and tells
// both what became of them.
//
// What a request's grammar forces is drafted first. With a fixed spec_length all others go on from
// there; else it stands beside their drafts, and the first of the cheap drafters goes on from
// there, too.
//
// With a fixed spec_length a draft is verified as it comes: the costly drafter's, or else that of
// the first drafter that has one; in a tree, what the others have beside it, too. Without one the
// planner chooses among the drafts of all drafters for all sequences at once; those whose tokens
// cost time are asked last and ask before each token; they go on from what the cheap ones have,
// where they are not better from the beginning, and what those have behind them comes last.
//
// A drafter that fails never ends a generation: its error is recorded and the round does without.
class Speculator {
 public:
    // No drafters: plain decoding. At most one of them is costly, the last. pads, alike: see
    // Planner; where alike, there are chains only, and pads is for lengths that are planned.
    // offers: one of them, or null; needed for paced sequences, of which nobody else drafts and
    // nothing is planned.
    // limits: of what is verified of a draft; one sibling: drafts are chains.
    Speculator(std::vector<std::shared_ptr<Drafter>> drafters, std::shared_ptr<Offers> offers,
               std::optional<int> spec_length, const Tree::Limits& limits, const Vocab& vocab,
               bool pads, bool alike);

    bool speculates() const { return !drafters_.empty(); }
    // Whether lengths are planned.
    bool plans() const { return speculates() && !spec_length_; }
    // Whether the planner is to hear what the target's decodes take: who drafts elsewhere plans,
    // too.
    bool times() const { return plans() || offers_; }
    // Whether anybody drafts beside those who do it elsewhere.
    bool drafts() const { return drafters_.size() > (offers_ ? 1 : 0); }
    Planner& planner() { return planner_; }
    std::span<const std::shared_ptr<Drafter>> drafters() const { return drafters_; }
    // Most tokens of a draft.
    int longest() const { return spec_length_.value_or(kMaxSpecLength); }
    const Tree::Limits& limits() const { return limits_; }

    // A sequence enters, with its prompt, and leaves.
    void begin(Sequence& sequence, TokenSpan reference);
    void end(Sequence& sequence);

    // Chooses the drafts of a round. limits[i]: of sequences[i].
    void propose(std::span<Sequence* const> sequences, std::span<const Limit> limits);

    // The draft to verify for sequences[i]. Valid until the next propose.
    const Tree& draft(std::size_t i) const { return work_[i].verified; }

    // Whether a drafter reads the target's states.
    bool reads_states() const { return reader_ != nullptr; }
    // What the target has decoded of a sequence, for that one: see StateReader::absorb.
    void absorb(Sequence& sequence, Position first, std::span<const int> rows);

    // What the target's decode of n rows took; heard by the planner, if it is to hear of it.
    void observe_decode(int n, int n_context, double seconds) {
        if (times()) planner_.cost().observe(n, n_context, seconds);
    }

    // What came of draft(i), which goes into the sequence's statistics and trace: these nodes were
    // accepted, each the child of the one before, then `next` came, negative if nothing could.
    // `seconds`: of the decode, for the trace; 0 where that is not known.
    void observe(std::size_t i, Sequence& sequence, std::span<const int> path, Token next,
                 double seconds);

    // The token that the target cannot but choose next, since the sequence's grammar leaves no
    // other; kNoToken: there is none.
    Token certain(Sequence& sequence);

 private:
    // What is under way for a sequence in this round.
    struct Work {
        bool replays = false;             // whether it goes on behind tokens that end a generation
        std::vector<JoinedDraft> joined;  // [row of proposals_]
        std::vector<bool> kept;           // [node of the one that is chosen]
        Tree verified;
        std::vector<Token> heard;  // what the target has said
        // The costly drafter's draft: with how many tokens of another's it begins, and how many of
        // another's follow its own.
        int n_prefix = 0;
        int n_rest = 0;
        Stopwatch asked;                            // since it was asked
        std::function<bool(const Draft&)> another;  // whether it should go on
    };

    // Rows of proposals_ behind those of the drafters: what grammars force, and how the first
    // drafter goes on from there.
    std::size_t forced() const { return drafters_.size(); }
    std::size_t beyond() const { return drafters_.size() + 1; }
    Drafter& drafter(std::size_t row);

    void ask_all(std::span<Sequence* const> sequences);
    void take_offer(std::size_t i, const Sequence& sequence, Limit limit);
    void prepare(std::size_t row, std::span<Sequence* const> sequences);
    void go_on_from_forced(std::size_t row, std::span<Sequence* const> sequences);
    double ask(std::size_t row, std::span<Sequence* const> sequences);
    bool ask_costly(std::span<Sequence* const> sequences);
    bool another(std::size_t i, const Draft& draft);
    void choose(std::span<Sequence* const> sequences, const Tree::Limits& limits);
    void offer(std::size_t i, Tree::Limits limits);
    void take_first(Turn& turn) const;
    void verify(std::size_t i, const Tree::Limits& limits);
    void judge(std::size_t i);
    void tell(std::size_t i, Sequence& sequence, std::span<const int> path);

    std::vector<std::shared_ptr<Drafter>> drafters_;
    std::shared_ptr<Offers> offers_;
    StateReader* reader_ = nullptr;  // the last of them, if it is one
    std::unique_ptr<GrammarDrafter> grammar_;
    std::optional<int> spec_length_;
    Tree::Limits limits_;
    const Vocab* vocab_;
    Planner planner_;
    std::map<SequenceId, Phase> phases_;
    // Kept between rounds so that none allocates.
    std::vector<std::vector<Proposal>> proposals_;  // [row][i]
    std::vector<Turn> turns_;                       // [i]
    std::vector<Work> work_;                        // [i]
    std::vector<const Draft*> beside_;              // [row]: those of a sequence
    Draft told_;                                    // to the drafters: a trunk
    Tree offered_;                                  // to a paced sequence
};

}  // namespace specllama
