#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "plan/acceptance.h"
#include "plan/draft_cost.h"
#include "plan/length_value.h"
#include "plan/round_plan.h"
#include "plan/thread_curves.h"
#include "plan/verification_batch.h"

namespace specllama {

// Decides what is verified, from the cost of decodes and the chances of the drafted tokens. Of all
// tokens at hand, of one or of many sequences, it chooses those that save the most time:
//
//     sum over rows of P(row and those before it right) * value - (v(rows) - v(no drafts))
//
// where a token's value is the time that it costs otherwise. For one sequence in a known regime of
// its text, this is the draft length g with the highest speed
//
//     (1 + sum over i <= g of P(first i tokens right)) / (spent + v(n_pending + g) + overhead)
//
// (Leviathan et al. 2023, Theorem 3.8, with measured v and a probability for each token). The best
// choice may be no draft at all.
//
// The best of many estimates tends to be overestimated, and a text may be of a kind never seen. So
// the planner keeps account of what drafting has really saved, see TextRegime::regret. A request
// that drafts have made slower drafts again only for a higher promise (the risk exponent), and no
// request risks much more than its drafts have saved.
//
// A request begins with begin(). In each round of it a RoundPlan comes from choose(), with a draft
// model twice: should_continue() needs the first plan, and learn() the last one and its
// RoundOutcome. cost() and draft_cost() are told of the decodes in between.
//
// Pure: it reads no clock, and the same inputs give the same choices. One planner serves a session,
// and each request has its TextRegime. Calls allocate only when more is at hand than ever before.
class Planner {
 public:
    // per_sequence_streams: see VerificationBatch::select_per_stream.
    // most_rows: drafts of several sequences that share a decode make it no larger than this.
    explicit Planner(bool per_sequence_streams = false,
                     int most_rows = VerificationBatch::kAnyNumber)
        : per_sequence_streams_(per_sequence_streams), most_rows_(most_rows) {}

    // What is known at the start of a request.
    TextRegime begin(double temperature, int n_prompt) const;

    // Sets the choices and rows of the plans for requests that share a decode. plans[i]: for
    // requests[i].
    void choose(std::span<const RoundRequest> requests, std::span<RoundPlan> plans);

    // How many tokens of the chosen draft a draft model should check in its first step. Each costs
    // a row of that step, and saves a step if it is what the model would draft.
    int n_to_check(const RoundRequest& request, const Choice& choice);

    // Whether a draft model should draft another token, or its block, after `draft`, for which it
    // has taken `seconds` so far, in addition to request.spent. It should if some continuation up
    // to the cap is expected to save more than stopping now, that is, more than the choice and any
    // beginning of `draft`. Before its first token, to be asked too, it may also be tried at the
    // risk of a small loss: to check what was chosen (plan.n_to_check), or where it would pay in
    // some regime.
    bool should_continue(const RoundRequest& request, const RoundPlan& plan, EvidenceSpan draft,
                         double seconds);

    // The share of its tokens that must be accepted for a draft model to pay at some length, if all
    // are accepted equally often (Leviathan et al.); kNeverPays: there is none; 0: its cost is
    // unknown.
    double break_even(int n_context) const;
    static constexpr double kNeverPays = 2;

    // Learns from the outcome of a plan.
    void learn(const RoundRequest& request, const RoundPlan& plan, const RoundOutcome& outcome);

    // Costs of the target's decodes and of the draft model's steps. The caller observes both.
    CostCurve& cost() { return curves_.now(); }
    ThreadCurves& curves() { return curves_; }
    DraftCost& draft_cost() { return draft_cost_; }
    // From now on decodes use n threads.
    void set_threads(int n) {
        curves_.set_threads(n);
        draft_cost_.curves().set_threads(n);
    }

 private:
    static constexpr double kAny = std::numeric_limits<double>::infinity();

    // What the sequences of a decode share.
    struct BatchContext {
        int n_sequences = 0;
        int n_rows = 0;     // without drafts
        int n_context = 0;  // mean of the sequences
        double spent = 0;   // seconds of the round besides its decode
    };

    const CostCurve& cost() const { return curves_.now(); }
    // The exponent that weakens chances in a request with such a regret; and the one for verifying
    // a draft that is already there.
    double risk_exponent(double regret) const;
    double verify_risk_exponent(const RoundRequest& request, const DraftCandidate& candidate) const;
    // Whether its sequences may be decoded one after another, at widths of their own.
    bool apart(const BatchContext& context) const {
        return per_sequence_streams_ && context.n_sequences > 1;
    }
    // [n]: seconds to reckon with for a decode of n rows, up to n_most: see
    // CostCurve::decode_costs, and WidthSwitch::decode_costs.
    VerificationBatch::DecodeCosts steady_costs(const BatchContext& context, int n_most) const {
        return cost().decode_costs(std::max(n_most, cost().width_switch().last()),
                                   context.n_context);
    }
    VerificationBatch::DecodeCosts decode_costs(const BatchContext& context, int n_most) const {
        const VerificationBatch::DecodeCosts all = steady_costs(context, n_most);
        return apart(context) ? all : cost().width_switch().decode_costs(all, context.n_rows);
    }
    // Extra seconds of the draft model's first token, as it must process request.n_unprocessed
    // tokens and n_to_check more.
    double prefill_cost(const RoundRequest& request, int n_to_check = 0) const;
    // Whether the tokens to come are expected to save enough for a draft model to take in the text,
    // which takes `reading` seconds: as much with each as with those that have come.
    bool pays_to_read(const RoundRequest& request, double reading) const;
    // The part of request.spent that went into processing the text.
    double prefill_spent(const RoundRequest& request, const RoundPlan& plan) const;
    void predict(const BatchContext& context, const RoundRequest& request, EvidenceSpan draft,
                 double risk_exponent, LengthValue& value, double step = 0) const;
    const LengthValue& with_model(const RoundRequest& request, const Choice& choice,
                                  EvidenceSpan prefix, double seconds);
    void add_sequence(const BatchContext& context, const RoundRequest& request, Choice& choice);
    void add_rows(const RoundRequest& request, const DraftCandidate& candidate,
                  const LengthValue& value);
    void select(const BatchContext& context, std::span<const RoundRequest> requests,
                std::span<RoundPlan> plans);
    void store(const BatchContext& context, std::span<RoundPlan> plans);

    bool per_sequence_streams_;
    int most_rows_;
    ThreadCurves curves_;
    DraftCost draft_cost_;
    Acceptance acceptance_;
    // TextRegime::regret and TextRegime::spent of the request that learned last.
    std::array<double, kSourceGroups> regret_{};
    double spent_ = 0;
    // The chance that a node is reached, and the seconds that this is worth.
    struct NodeValue {
        double reach_probability = 0;
        double gain = 0;
    };
    // [node + 1] of a candidate: that it is reached and all its children so far are wrong; [0]: the
    // committed text.
    std::vector<NodeValue> unclaimed_;
    // Members only so that rounds need not allocate them.
    std::array<LengthValue, 2> values_;
    VerificationBatch batch_;
};

}  // namespace specllama
