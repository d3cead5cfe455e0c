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
#include "plan/batch_share.h"
#include "plan/planner.h"
#include "specllama/types.h"

namespace specllama {

// What is verified of which draft: asks the drafters, decides how far their drafts pay, and tells
// both what became of them.
//
// With a fixed spec_length a draft is verified as it comes: the costly drafter's, or else, of
// several drafters', the one that begins with the likeliest token. Without one the planner chooses
// among the drafts of all drafters, by what they are expected to gain; those whose tokens cost time
// are asked last, go on from what the cheap ones have, and ask before each token. Where several
// sequences are decoded at once, each has the draft that promises most, and they share what pays
// for all together. The first of the cheap drafters also speculates for the costly one, where a
// sequence is alone.
//
// A drafter that fails never ends a generation: its error is recorded and the round does without.
class Speculator {
 public:
    // No drafters: plain decoding. At most one of them is costly, the last. alike: only sequences
    // with as many tokens each are decoded at once.
    Speculator(std::vector<std::shared_ptr<Drafter>> drafters, std::optional<int> spec_length,
               const Vocab& vocab, bool alike);

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

    // What the target's decode of n tokens took.
    void observe_decode(int n, int n_context, double seconds);

    // What came of draft(i): its first n_accepted tokens were accepted, then `next` came, negative
    // if nothing could. `seconds`: of the decode, for the trace; 0 where that is not known.
    void observe(std::size_t i, Sequence& sequence, int n_accepted, Token next, double seconds);

 private:
    using Clock = std::chrono::steady_clock;

    // The drafts of a sequence in this round.
    struct Round {
        Situation situation;
        bool replays = false;  // whether it goes on behind tokens that end a generation
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
    void share(std::span<Sequence* const> sequences);
    bool must_verify(std::size_t i) const;
    void offer(std::size_t i);
    void verify_first(std::size_t i, int n);
    EvidenceSpan evidence(const Draft& draft) const;
    // Whether the planner chooses whose draft is verified, and so has to be told how all did.
    bool chooses() const {
        return plans() || (drafters_.size() > 1 && !drafters_.back()->costly());
    }
    void trace(const Round& round, Sequence& sequence, int n_accepted, Token next, double seconds);
    void judge(const Round& round, Phase& phase, const Proposal& proposal, int n_accepted,
               Token next);

    std::vector<std::shared_ptr<Drafter>> drafters_;
    std::optional<int> spec_length_;
    const Vocab* vocab_;
    bool alike_;
    Planner planner_;
    BatchShare batch_share_;
    InnerSpeculator inner_;
    std::map<SequenceId, Phase> phases_;
    // Kept between rounds so that none allocates.
    std::vector<std::vector<Proposal>> proposals_;  // [drafter][i]
    std::vector<Round> rounds_;                     // [i]
    std::vector<EvidenceSpan> evidence_;
    std::vector<Share> shares_;   // [i]
    std::vector<double> tokens_;  // to expect of a draft
};

}  // namespace specllama
