#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "engine/inner_speculator.h"
#include "engine/sequence.h"
#include "llama/vocab.h"
#include "plan/planner.h"
#include "specllama/types.h"

namespace specllama {

// What is verified of which draft: asks the drafters, decides how far their drafts pay, and tells
// both what became of them.
//
// With a fixed spec_length the last drafter's draft is verified as it comes. Without one the
// planner chooses among the drafts of all drafters, by what they are expected to gain; those whose
// tokens cost time are asked last, go on from what the cheap ones have, and ask before each token.
// The first of the cheap ones also speculates for the costly one, with or without a fixed
// spec_length.
//
// A drafter that fails never ends a generation: its error is recorded and the round does without.
class Speculator {
 public:
    // No drafters: plain decoding. At most one of them is costly, the last.
    Speculator(std::vector<std::shared_ptr<Drafter>> drafters, std::optional<int> spec_length,
               const Vocab& vocab);

    bool speculates() const { return !drafters_.empty(); }
    // Whether lengths are planned, and by whom.
    bool plans() const { return speculates() && !spec_length_; }
    Planner& planner() { return planner_; }
    // v(n) of the costly drafter's decodes.
    CostCurve& draft_cost() { return inner_.cost(); }
    // Most tokens of a draft.
    int longest() const { return spec_length_.value_or(kMaxSpecLength); }

    // A sequence enters, with its prompt, and leaves.
    void begin(Sequence& sequence, TokenSpan reference);
    void end(Sequence& sequence);

    // Settles the drafts of a round. limits[i]: most tokens for sequences[i].
    void propose(std::span<Sequence* const> sequences, std::span<const int> limits);

    // The draft to verify for sequences[i]. Valid until the next propose.
    const Draft& draft(std::size_t i) const { return rounds_[i].verified; }

    // What came of draft(i): its first n_accepted tokens were accepted, then `next` came, negative
    // if nothing could. `seconds`: of a decode for this sequence alone, of n_decoded tokens; 0
    // where that is not known.
    void observe(std::size_t i, Sequence& sequence, int n_accepted, Token next, int n_decoded,
                 double seconds);

 private:
    using Clock = std::chrono::steady_clock;

    // The drafts of a sequence in this round.
    struct Round {
        Situation situation;
        Choice choice;
        Draft verified;
        // Of the costly drafter: how many tokens of the others it goes on from, when it was asked,
        // and whether it should go on.
        int n_prefix = 0;
        Clock::time_point started;
        std::function<bool(const Draft&)> another;
    };

    double ask(std::size_t drafter, std::span<Sequence* const> sequences);
    void ask_costly(std::span<Sequence* const> sequences);
    bool another(std::size_t i, const Draft& draft);
    void choose(std::span<Sequence* const> sequences);
    void choose(std::size_t i);
    void trace(const Round& round, Sequence& sequence, int n_accepted, Token next, double seconds);
    void judge(const Round& round, Phase& phase, const Proposal& proposal, int n_accepted,
               Token next);

    std::vector<std::shared_ptr<Drafter>> drafters_;
    std::optional<int> spec_length_;
    const Vocab* vocab_;
    Planner planner_;
    InnerSpeculator inner_;
    std::map<SequenceId, Phase> phases_;
    // Kept between rounds so that none allocates.
    std::vector<std::vector<Proposal>> proposals_;  // [drafter][i]
    std::vector<Round> rounds_;                     // [i]
    std::vector<EvidenceSpan> evidence_;
};

}  // namespace specllama
