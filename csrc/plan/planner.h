#pragma once

#include <array>
#include <limits>
#include <span>
#include <vector>

#include "plan/acceptance.h"
#include "plan/allotment.h"
#include "plan/chain.h"
#include "plan/cost_curve.h"
#include "plan/draft_cost.h"
#include "plan/turn.h"

namespace specllama {

// Decides what is verified, from what a decode costs and how likely the tokens are: of all tokens
// at hand, of one or of many sequences, those by which the decode gains the most time
//
//     sum over rows of P(this and those before it right) * worth - (v(rows) - v(no drafts))
//
// where a token is worth the time that it costs elsewhere. For one sequence in a known phase of its
// text this is the draft length g with the highest speed (1 + sum over i <= g of P(first i tokens
// right)) / (spent + v(n_pending + g) + overhead). (Leviathan et al. 2023, Theorem 3.8, with
// measured v and a probability for each token.) No draft at all is a legal answer.
//
// The best of many guesses is too good on average, and a text may be of a kind that was never seen.
// So what drafting has really brought is accounted, see Phase::debt: a request that it has made
// slower must be promised more before it drafts again, and nothing stakes much more than has been
// brought so far.
//
// A round goes begin (of the request), choose, cost().observe, learn; where a draft model is asked,
// n_prefix, goes_on before each of its tokens, observe_drafting, and choose once more.
//
// Pure: it reads no clock, and the same inputs give the same choices. One serves a session; each
// request has its Phase. No call allocates, but where more is at hand than ever before.
class Planner {
 public:
    // pads: whether decodes get rows beside those that are wanted where that makes them cheaper.
    // alike: whether only neighbours in the memory with as many rows each are decoded at once.
    explicit Planner(bool pads = false, bool alike = false) : pads_(pads), alike_(alike) {}

    // The phase at the start of a request.
    Phase begin(double temperature, int n_prompt) const;

    // Chooses for turns that share a decode.
    void choose(std::span<Turn> turns);

    // From behind how many tokens of the draft that was chosen a draft model should go on: all, or
    // none, where its own are so much better that it had better draft these, too.
    int n_prefix(const Turn& turn);

    // Whether a draft model should draft another token after those of `draft`, which took `seconds`
    // beside turn.spent: unless no continuation up to the cap can be expected to beat the best
    // that could be done without, which is to verify some of what is drafted or what turn.choice
    // says. And whether it is tried, which may be lost on its account. To be asked before the
    // first token, too.
    bool goes_on(const Turn& turn, EvidenceSpan draft, double seconds);

    // What came of a turn.
    void learn(const Turn& turn);

    // Rows that a decode of n tokens should have, and seconds that it takes then.
    int width(int n, int n_context) const { return pads_ ? cost_.width(n, n_context) : n; }
    double seconds(int n, int n_context) const {
        return cost_.seconds(width(n, n_context), n_context);
    }

    // What drafting took of the draft model: see DraftCost::observe.
    void observe_drafting(int n_steps, int n_drafted, int n_behind, int n_context, double seconds) {
        draft_cost_.observe(n_steps, n_drafted, n_behind, n_context, seconds);
    }

    // Of the target's decodes, which it is to hear of.
    CostCurve& cost() { return cost_; }
    CostCurve& draft_cost() { return draft_cost_.curve(); }

 private:
    static constexpr double kAny = std::numeric_limits<double>::infinity();

    // What the sequences of a decode have in common.
    struct Common {
        int n_sequences = 0;
        int n_rows = 0;  // without drafts
        int n_context = 0;
        double spent = 0;             // seconds of the round beside its decode
        double token_seconds = kAny;  // what a token costs at most
    };

    // The exponent by which a request with such a debt weakens chances; and for verifying a draft
    // that is there.
    double caution(double debt) const;
    double caution_to_verify(const Turn& turn, const Offer& offer) const;
    // [n]: what a decode of n rows counts as, see CostCurve::prices; for all up to n_most.
    Allotment::Prices prices(const Common& common, int n_most) const {
        return cost_.prices(n_most, common.n_context, pads_);
    }
    double price(const Common& common, int n_rows) const { return prices(common, n_rows)[n_rows]; }
    // Seconds by which the draft model's first token takes longer, since the model has to take in
    // what it did not see; and how many of turn.spent went into that.
    double catch_up(const Turn& turn) const;
    double taking_in(const Turn& turn) const;
    void foresee(const Common& common, const Turn& turn, EvidenceSpan draft, double caution,
                 Chain& chain, double step = 0) const;
    void foresee(const Common& common, std::span<Turn> turns);
    double saved(const Common& common, const Offer& offer, const Chain& chain) const;
    const Chain& with_model(const Turn& turn, EvidenceSpan prefix, double seconds);
    void offer(const Common& common, Turn& turn, std::span<Chain> chains);
    void add_rows(const Turn& turn, const Offer& offer, const Chain& chain);
    void allot(const Common& common, std::span<Turn> turns);
    void write_down(const Common& common, std::span<Turn> turns);

    bool pads_;
    bool alike_;
    CostCurve cost_;
    DraftCost draft_cost_;
    Acceptance acceptance_;
    // Of the request that learned last.
    std::array<double, kViews> debt_{};
    double spent_ = 0;
    // How likely a node is reached, and the seconds that this is worth.
    struct Reach {
        double tokens;
        double gain;
    };
    std::vector<Reach> reach_;  // [node + 1] of an offer; [0]: of what is committed
    // Kept here for their size.
    std::vector<Chain> chains_ = std::vector<Chain>(1);  // of all offers of a round, in turn
    Allotment allotment_;
};

}  // namespace specllama
