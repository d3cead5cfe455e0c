#pragma once

#include <algorithm>
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

// Decides what is verified, from the cost of decodes and the chances of the drafted tokens. Of all
// tokens at hand, of one or of many sequences, it chooses those that save the most time:
//
//     sum over rows of P(row and those before it right) * worth - (v(rows) - v(no drafts))
//
// where a token's worth is the time that it costs otherwise. For one sequence in a known phase of
// its text, this is the draft length g with the highest speed
//
//     (1 + sum over i <= g of P(first i tokens right)) / (spent + v(n_pending + g) + overhead)
//
// (Leviathan et al. 2023, Theorem 3.8, with measured v and a probability for each token). The best
// choice may be no draft at all.
//
// The best of many estimates tends to be overestimated, and a text may be of a kind never seen. So
// the planner keeps account of what drafting has really saved, see Phase::debt. A request that
// drafts have made slower drafts again only for a higher promise (caution), and no request stakes
// much more than its drafts have saved.
//
// Order of calls: begin for a request; then in each round choose, cost().observe, learn. With a
// draft model: choose, n_guess, goes_on before each of its tokens, draft_cost().observe, choose
// again.
//
// Pure: it reads no clock, and the same inputs give the same choices. One planner serves a session,
// and each request has its Phase. Calls allocate only when more is at hand than ever before.
class Planner {
 public:
    // split: whether the sequences lie apart in the memory, see Allotment::allot_split.
    // most_rows: drafts of several sequences that share a decode make it no larger than this.
    explicit Planner(bool split = false, int most_rows = Allotment::kAnyNumber)
        : split_(split), most_rows_(most_rows) {}

    // What is known at the start of a request.
    Phase begin(double temperature, int n_prompt) const;

    // Sets the choices of turns that share a decode.
    void choose(std::span<Turn> turns);

    // How many tokens of the chosen draft a draft model should check in its first step. Each costs
    // a row of that step, and saves a step if it is what the model would draft.
    int n_guess(const Turn& turn);

    // Whether a draft model should draft another token behind `draft`, for which it has taken
    // `seconds` so far, beside turn.spent. It should if some continuation up to the cap is expected
    // to save more than stopping now, that is, more than turn.choice and any beginning of `draft`.
    // Before its first token, to be asked too, it may also be tried at the risk of a small loss:
    // to check what was chosen (turn.n_guess), or where it would pay in some phase.
    bool goes_on(const Turn& turn, EvidenceSpan draft, double seconds);

    // Learns from the outcome of a turn.
    void learn(const Turn& turn);

    // Costs of the target's decodes and of the draft model's steps. The caller observes both.
    CostCurve& cost() { return cost_; }
    DraftCost& draft_cost() { return draft_cost_; }

 private:
    static constexpr double kAny = std::numeric_limits<double>::infinity();

    // What the sequences of a decode have in common.
    struct Common {
        int n_sequences = 0;
        int n_rows = 0;     // without drafts
        int n_context = 0;  // mean of the sequences
        double spent = 0;   // seconds of the round beside its decode
    };

    // The exponent that weakens chances in a request with such a debt; and the one for verifying a
    // draft that is already there.
    double caution(double debt) const;
    double caution_to_verify(const Turn& turn, const DraftCandidate& candidate) const;
    // Whether its sequences may be decoded one after another, at widths of their own.
    bool apart(const Common& common) const { return split_ && common.n_sequences > 1; }
    // [n]: seconds to reckon with for a decode of n rows, up to n_most: see CostCurve::prices, and
    // WidthChange::prices.
    Allotment::Prices settled(const Common& common, int n_most) const {
        return cost_.prices(std::max(n_most, cost_.change().last()), common.n_context);
    }
    Allotment::Prices prices(const Common& common, int n_most) const {
        const Allotment::Prices all = settled(common, n_most);
        return apart(common) ? all : cost_.change().prices(all, common.n_rows);
    }
    // Extra seconds of the draft model's first token, as it must take in turn.n_behind tokens and
    // n_guess more; and the part of turn.spent that went into the former.
    double catch_up(const Turn& turn, int n_guess = 0) const;
    double taking_in(const Turn& turn) const;
    void foresee(const Common& common, const Turn& turn, EvidenceSpan draft, double caution,
                 Chain& chain, double step = 0) const;
    const Chain& with_model(const Turn& turn, EvidenceSpan prefix, double seconds);
    void enter(const Common& common, Turn& turn);
    void add_rows(const Turn& turn, const DraftCandidate& candidate, const Chain& chain);
    void allot(const Common& common, std::span<Turn> turns);
    void write_down(const Common& common, std::span<Turn> turns);

    bool split_;
    int most_rows_;
    CostCurve cost_;
    DraftCost draft_cost_;
    Acceptance acceptance_;
    // Phase::debt and Phase::spent of the request that learned last.
    std::array<double, kViews> debt_{};
    double spent_ = 0;
    // The chance that a node is reached, and the seconds that this is worth.
    struct Reach {
        double tokens = 0;
        double gain = 0;
    };
    // [node + 1] of a candidate: that it is reached and all its children so far are wrong; [0]: the
    // committed text.
    std::vector<Reach> left_;
    // Members only so that rounds need not allocate them.
    std::array<Chain, 2> chains_;
    Allotment allotment_;
};

}  // namespace specllama
