#pragma once

#include <array>
#include <span>
#include <vector>

#include "draft/evidence.h"
#include "plan/acceptance.h"
#include "plan/cost_curve.h"
#include "specllama/types.h"

namespace specllama {

using EvidenceSpan = std::span<const Evidence>;

// What the planner needs to know of a round beforehand.
struct Situation {
    int n_tokens = 0;     // of the sequence so far: the position of a draft's first token
    int n_pending = 1;    // of those, how many the decode takes in before the draft
    int max_draft = 0;    // most tokens that may be drafted
    double overhead = 0;  // seconds a round costs beside drafting and decoding, e.g. of a network
    double spent = 0;     // seconds that went into drafts for this round so far
    int n_beside = 0;     // other sequences that have a token each in the same decode
};

// What a round should do.
struct Choice {
    int draft = -1;   // index of the draft to verify; -1: none
    int n_draft = 0;  // how many of its tokens
    // Expected, the latter from now on without what was spent.
    double tokens = 1;
    double seconds = 0;
    // Expected to be saved by it against decoding plainly.
    double saved = 0;
    // Not the best that is known: made to find out whether it is better.
    bool probe = false;
};

// Decides how many tokens of which draft are verified, from what a decode costs and how likely the
// tokens are: the choice with the highest expected speed
//
//     S(g) = (1 + sum over i <= g of P(first i tokens right)) / (spent + v(n_pending + g) +
//     overhead)
//
// over all drafts at hand and EVERY g from 0 to the cap: v is a staircase, so the first step that
// does not pay says nothing about the next. (Leviathan et al. 2023, Theorem 3.8, with measured v
// and a probability for each token.) 0 is a legal answer.
//
// Where the phase of the text is in doubt, the highest S is not the best: tokens gained where many
// are right are cheap anyway, and time lost where few are is not. So a token counts as the time it
// costs in its phase at the best g there, 1 / max S; what is maximised is the time saved, expected
// over the phases. In a single phase this is the g of the highest S.
//
// The best of many guesses is too good on average, and a text may be of a kind that was never seen.
// So what drafting has really brought is accounted: a request that it has made slower must be
// promised more before it drafts again, and no draft stakes much more than it has brought so far.
//
// Pure: it reads no clock, and the same inputs give the same choices. One serves a session; each
// request has its Phase. No call allocates.
class Planner {
 public:
    // The phase at the start of a request.
    Phase begin(double temperature, int n_prompt) const;

    // What to verify of the drafts at hand; they may be none, or empty.
    Choice choose(const Situation& situation, const Phase& phase,
                  std::span<const EvidenceSpan> drafts);

    // Tokens to expect of a round that verifies g tokens of a draft, for g = 0, 1, ...; fewer where
    // the request is cautious.
    void expect(const Situation& situation, const Phase& phase, EvidenceSpan draft,
                std::vector<double>& tokens) const;

    // Of the drafts at hand the one whose first token is the likeliest, where the length is fixed.
    Choice likeliest(const Situation& situation, const Phase& phase,
                     std::span<const EvidenceSpan> drafts);

    // Whether a draft model should draft another token after those of `draft`, whose time is in
    // situation.spent: unless no continuation up to the cap can be expected to beat the best that
    // could be done without, which is to verify some of what is drafted or to do what `otherwise`
    // says, a choice among the drafts at hand. To be asked before the first token, too.
    bool another(const Situation& situation, const Phase& phase, EvidenceSpan draft,
                 const Choice& otherwise);

    // What the target said about a draft of this round: the first n_right of its tokens are the
    // target's, and the target was heard about n_judged, which is one more than it accepted. Also
    // for what was not verified: the round's tokens judge every draft for free.
    void observe(Phase& phase, int n_tokens, EvidenceSpan draft, int n_right, int n_judged);

    // What a round came to: of n_draft tokens that were verified n_accepted were accepted. To be
    // told of every round, after the above.
    void settle(Phase& phase, const Situation& situation, int n_draft, int n_accepted);

    // What a decode of n tokens took: by the target, by the draft model.
    void observe_decode(int n, int n_context, double seconds);
    void observe_draft_decode(int n, int n_context, double seconds) {
        draft_cost_.observe(n, n_context, seconds);
    }

    CostCurve& cost() { return cost_; }
    CostCurve& draft_cost() { return draft_cost_; }

 private:
    // What every length of a draft is worth.
    struct Lengths {
        int longest = 0;
        // [g]: in each phase; on average.
        std::array<PhaseLanes, kMaxSpecLength + 1> tokens{};
        std::array<double, kMaxSpecLength + 1> expected{};
        std::array<double, kMaxSpecLength + 1> seconds{};
        std::array<double, kMaxSpecLength + 1> saved{};
        // caution: the part by which time to be lost counts more than time to be saved.
        void weigh(const Phase::Weights& phases, const Situation& situation, double caution);
    };
    // Of decodes that may be cheaper than believed.
    struct CostProbe {
        double interval = 1;  // rounds from one to the next
        int n_rounds = 0;     // since the last
        int n = 0;            // width of the one under way
        double seconds = 0;   // that it is believed to take
    };
    // Of a draft model that does not seem to pay.
    struct DraftProbe {
        int interval = 1;  // rounds from one to the next: longer, the more were useless
        int n_rounds = 0;  // since the last
        int n_right = 0;   // in a row
        bool under_way = false;
        void end(bool right);
    };

    double decode_seconds(const Situation& situation, int n_draft) const;
    double caution(const Phase& phase) const;
    // Seconds that a draft may cost more than none.
    double stake(const Phase& phase) const;
    // Of one token by the draft model, which drafts one for each sequence at once.
    double draft_step(const Situation& situation) const;
    // By which its first token takes longer, since it has to take in what it did not see.
    double catch_up(const Situation& situation, const Phase& phase) const;
    void weigh(const Situation& situation, const Phase& phase, EvidenceSpan draft);
    // Seconds by which a decode may be cheaper than believed, next to one of another length.
    double hoped_gain(const Situation& situation, int n_draft, int n_other) const;
    // Whether a probe may lose so much, and this much would be left; then it is lost.
    bool affordable(double loss, double reserve = 0);
    template <typename PaysIn>
    bool ask_model(double step, double catch_up, PaysIn pays_in);

    CostCurve cost_;
    CostCurve draft_cost_;
    Acceptance acceptance_;
    Lengths lengths_;     // kept here for its size
    double debt_ = 0;     // of the request that settled last
    double seconds_ = 0;  // of all decodes
    double lost_ = 0;     // of those, by probes
    CostProbe cost_probe_;
    DraftProbe draft_probe_;
};

}  // namespace specllama
