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

// What is known of a draft model with a target.
struct DraftRecord {
    double net_gain = 0;              // see DraftCost
    std::vector<double> model_rates;  // see Acceptance
};

// Chooses the drafted tokens to verify, from the cost of decodes and the probabilities of the
// tokens. Of all candidates of one or many sequences, it chooses those that save the most time:
//
//     sum over rows of P(row and those before it right) * value - (v(rows) - v(no drafts))
//
// where a token's value is the time that it would cost otherwise. For one sequence in a known
// regime, this is the draft length g with the highest speed
//
//     (1 + sum over i <= g of P(first i tokens right)) / (spent + v(n_pending + g) + overhead)
//
// (Leviathan et al. 2023, Theorem 3.8, with measured v and a probability for each token). The best
// choice may be no draft.
//
// The best of many estimates tends to be too high, and a text may be of an unknown kind. So the
// planner records what drafting has really saved (TextRegime::regret). A request that became slower
// by drafting drafts again only for a higher expected gain (the risk exponent), and no request
// risks much more than its drafts have saved.
//
// A request begins with begin(). In each round, choose() makes a RoundPlan, with a draft model two:
// should_continue() needs the first one, and learn() the last one and its RoundOutcome. cost() and
// draft_cost() must observe the decodes in between.
//
// Reads no clock: the same inputs give the same choices. A session has one planner, and each
// request has its TextRegime. Calls allocate only when there are more candidates than ever before.
class Planner {
 public:
    // per_sequence_streams: see VerificationBatch::select_per_stream. most_rows: largest decode
    // with drafts of several sequences.
    explicit Planner(bool per_sequence_streams = false,
                     int most_rows = VerificationBatch::kAnyNumber)
        : per_sequence_streams_(per_sequence_streams), most_rows_(most_rows) {}

    // What is known at the start of a request. n_prompt: tokens of its prompt.
    TextRegime begin(double temperature, int n_prompt) const;

    // Sets the choices and rows of plans[i] for requests[i]. The requests share a decode.
    void choose(std::span<const RoundRequest> requests, std::span<RoundPlan> plans);

    // How many tokens of the chosen draft a draft model should check in its first step. Each costs
    // a row of that step, and saves a step if the model would draft the same token.
    int n_to_check(const RoundRequest& request, const Choice& choice);

    // Whether a draft model should draft another token, or its block, after `draft`. seconds: what
    // it has taken for `draft` so far, in addition to request.spent. It should if some continuation
    // up to the limit is expected to save more than stopping now, that is, more than the choice and
    // any beginning of `draft`. Before its first token it may also be tried at the risk of a small
    // loss: to check the chosen draft (plan.n_to_check), or if it would pay in some regime.
    bool should_continue(const RoundRequest& request, const RoundPlan& plan, EvidenceSpan draft,
                         double seconds);

    // The acceptance rate from which a draft model pays at some length, if it is the same for all
    // tokens (Leviathan et al.). kNeverPays: it does not pay at any rate; 0: its cost is unknown.
    double break_even(int n_context) const;
    static constexpr double kNeverPays = 2;

    // Learns from the outcome of a plan.
    void learn(const RoundRequest& request, const RoundPlan& plan, const RoundOutcome& outcome);

    // Costs of the target's decodes and of the draft model's steps. The caller adds the
    // observations.
    CostCurve& cost() { return curves_.now(); }
    ThreadCurves& curves() { return curves_; }
    DraftCost& draft_cost() { return draft_cost_; }
    // What is known of the draft model with this target, for the next session with both; and a
    // start from that.
    DraftRecord draft_record() const { return {draft_cost_.net_gain(), acceptance_.model_rates()}; }
    void restore(const DraftRecord& record) {
        draft_cost_.restore_net_gain(record.net_gain);
        acceptance_.restore_model_rates(record.model_rates);
    }
    // From now on decodes use n threads.
    void set_threads(int n) {
        curves_.set_threads(n);
        draft_cost_.curves().set_threads(n);
    }

 private:
    static constexpr double kAny = std::numeric_limits<double>::infinity();

    // Common values of the sequences of a decode.
    struct BatchContext {
        int n_sequences = 0;
        int n_rows = 0;     // without drafts
        int n_context = 0;  // mean over the sequences
        double spent = 0;   // seconds of the round without its decode
    };

    const CostCurve& cost() const { return curves_.now(); }
    // The risk exponent of a request with this regret, and the one for verifying an existing draft.
    double risk_exponent(double regret) const;
    double verify_risk_exponent(const RoundRequest& request, const DraftCandidate& candidate) const;
    // Whether its sequences may be decoded separately, each at its own width.
    bool apart(const BatchContext& context) const {
        return per_sequence_streams_ && context.n_sequences > 1;
    }
    // [n]: seconds to assume for a decode of n rows, up to n_most. See CostCurve::decode_costs and
    // WidthSwitch::decode_costs.
    VerificationBatch::DecodeCosts steady_costs(const BatchContext& context, int n_most) const {
        return cost().decode_costs(std::max(n_most, cost().width_switch().last()),
                                   context.n_context);
    }
    VerificationBatch::DecodeCosts decode_costs(const BatchContext& context, int n_most) const {
        const VerificationBatch::DecodeCosts all = steady_costs(context, n_most);
        return apart(context) ? all : cost().width_switch().decode_costs(all, context.n_rows);
    }
    // Additional seconds of the draft model's first token, since it must process
    // request.n_unprocessed tokens and n_to_check more.
    double prefill_cost(const RoundRequest& request, int n_to_check = 0) const;
    // Whether the remaining tokens are expected to save enough for a draft model to process the
    // text, which takes `reading` seconds. Each is expected to save as much as the tokens so far.
    bool pays_to_read(const RoundRequest& request, double reading) const;
    // The part of request.spent for processing the text.
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
    // TextRegime::regret and TextRegime::spent of the last request that learned.
    std::array<double, kSourceGroups> regret_{};
    double spent_ = 0;
    // The probability that a node is reached, and its value in seconds.
    struct NodeValue {
        double reach_probability = 0;
        double gain = 0;
    };
    // [node + 1]: value of the case that a candidate's node is reached and all its children so far
    // are wrong; [0]: the same for the committed text.
    std::vector<NodeValue> unclaimed_;
    // Members only to avoid allocations in rounds.
    std::array<LengthValue, 2> values_;
    VerificationBatch batch_;
};

}  // namespace specllama
