#include "plan/planner.h"

#include <numeric>
#include <utility>

#include "plan/constants.h"

namespace specllama {

namespace {

double total_regret(const TextRegime& regime) {
    return std::accumulate(regime.regret.begin(), regime.regret.end(), regime.spent);
}

// The source group of a candidate's own tokens.
std::size_t source_group(const DraftCandidate& candidate) {
    const int n_known = candidate.n_known < std::ssize(candidate.evidence) ? candidate.n_known : 0;
    return specllama::source_group(candidate.evidence[n_known].source);
}

int longest(const RoundRequest& request, EvidenceSpan draft) {
    return std::clamp(request.max_draft, 0,
                      std::min(static_cast<int>(draft.size()), kMaxSpecLength));
}

}  // namespace

TextRegime Planner::begin(double temperature, int n_prompt) const {
    TextRegime regime = acceptance_.begin(temperature, n_prompt);
    std::ranges::transform(regret_, regime.regret.begin(),
                           [](double one) { return std::max(one, 0.0); });
    const std::size_t model = specllama::source_group(Source::model);
    regime.start = n_prompt;
    regime.spent = std::max(regret_[model] + spent_, 0.0) - regime.regret[model];
    return regime;
}

double Planner::risk_exponent(double regret) const {
    return 1 + tuning::kRiskPerToken * std::max(regret, 0.0) / cost().seconds(1, 0);
}

// An existing draft only costs its rows, so the time for making drafts is not counted. Regret is
// tracked per source group: losses from copying must not penalise grammar drafts. A group may lose
// what other groups have gained. Copies of earlier requests may not: no request should be slower
// because of them.
double Planner::verify_risk_exponent(const RoundRequest& request,
                                     const DraftCandidate& candidate) const {
    const TextRegime& regime = *request.regime;
    const std::size_t group = source_group(candidate);
    if (group == specllama::source_group(Source::history))
        return risk_exponent(regime.regret[group]);
    return risk_exponent(std::min(regime.regret[group], total_regret(regime) - regime.spent));
}

double Planner::prefill_cost(const RoundRequest& request, int n_to_check) const {
    return draft_cost_.prefill_cost(request.n_unprocessed + n_to_check, request.n_tokens);
}

// Processing the text also serves later rounds, so it counts in the draft model's net gain, not in
// this round.
double Planner::prefill_spent(const RoundRequest& request, const RoundPlan& plan) const {
    return plan.without_draft_model ? std::min(prefill_cost(request), request.spent) : 0;
}

void Planner::choose(std::span<const RoundRequest> requests, std::span<RoundPlan> plans) {
    if (requests.empty()) return;
    BatchContext all{.n_sequences = static_cast<int>(requests.size())};
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const RoundRequest& request = requests[i];
        all.n_rows += request.n_pending;
        all.n_context += request.n_tokens / all.n_sequences;
        all.spent = std::max(all.spent,
                             request.spent - prefill_spent(request, plans[i]) + request.overhead);
    }
    select(all, requests, plans);
    store(all, plans);
    if (cost().width_switch().seconds() > 0 && !apart(all))
        cost().width_switch().learn(batch_.tokens(), all.n_sequences, all.n_rows,
                                    steady_costs(all, all.n_rows + all.n_sequences));
}

void Planner::select(const BatchContext& context, std::span<const RoundRequest> requests,
                     std::span<RoundPlan> plans) {
    batch_.clear();
    for (std::size_t i = 0; i < requests.size(); ++i)
        add_sequence(context, requests[i], plans[i].choice);
    const auto costs = decode_costs(context, batch_.n_most());
    if (apart(context))
        batch_.select_per_stream(costs);
    else
        batch_.select(costs, requests.size() > 1 ? most_rows_ : VerificationBatch::kAnyNumber);
}

// Sets the values of a draft to which a draft model may add tokens, at `step` seconds each.
void Planner::predict(const BatchContext& context, const RoundRequest& request, EvidenceSpan draft,
                      double risk_exponent, LengthValue& value, double step) const {
    value.longest =
        acceptance_.predict(*request.regime, request.n_tokens, draft, risk_exponent, value.regimes,
                            std::span(value.in_regime).first(value.longest + 1));
    const auto costs = decode_costs(context, context.n_rows + value.longest);
    const int n_drafted = static_cast<int>(draft.size());
    for (int g = 0; g <= value.longest; ++g)
        value.seconds[g] = costs[context.n_rows + g] + draft_cost_.n_steps(g, n_drafted) * step;
    const double plain = cost().seconds(1, request.n_tokens) + request.overhead;
    value.draft_budget =
        tuning::kDraftBudget * plain + std::max(-total_regret(*request.regime), 0.0);
    value.evaluate(context.n_sequences - 1, context.spent);
}

// Adds a sequence to the batch, with the candidate that saves most.
void Planner::add_sequence(const BatchContext& context, const RoundRequest& request,
                           Choice& choice) {
    choice = {};
    double best = -kAny;
    auto& [first, second] = values_;
    LengthValue* chosen = &first;
    LengthValue* other = &second;
    for (std::size_t i = 0; i < request.candidates.size(); ++i) {
        const DraftCandidate& one = request.candidates[i];
        other->longest = longest(request, one.evidence);
        if (other->longest == 0) continue;
        predict(context, request, one.evidence, verify_risk_exponent(request, one), *other);
        const double time_saved = one.required ? kAny : other->most_time_saved(1, other->longest);
        if (time_saved <= best) continue;
        best = time_saved;
        choice.candidate = static_cast<int>(i);
        std::swap(chosen, other);
    }
    if (choice.candidate < 0) {
        batch_.add_sequence(request.n_pending, 0, request.stream);
        return;
    }
    const DraftCandidate& candidate = request.candidates[choice.candidate];
    if (candidate.drawn && candidate.required) {
        choice.n_draft = static_cast<int>(candidate.evidence.size());
        choice.tokens = chosen->tokens[chosen->longest];
        choice.time_saved = chosen->gain[chosen->longest];
        batch_.add_sequence(request.n_pending + choice.n_draft, 0, request.stream);
        return;
    }
    batch_.add_sequence(request.n_pending, chosen->draft_budget, request.stream, request.max_rows);
    add_rows(request, candidate, *chosen);
}

// Adds the rows of a draft and of its alternatives. An accepted alternative must be decoded again
// with the next round (RoundOutcome::n_repeated), so its gain is reduced by the cost of a row.
void Planner::add_rows(const RoundRequest& request, const DraftCandidate& candidate,
                       const LengthValue& value) {
    const int n_main =
        candidate.alternatives.empty() ? value.longest : longest(request, candidate.evidence);
    unclaimed_.assign(1, {1, value.token_value});
    int row = VerificationBatch::kCommitted;
    for (int g = 1; g <= n_main; ++g) {
        NodeValue own;
        if (g <= value.longest)
            own = {value.tokens[g] - value.tokens[g - 1], value.gain[g] - value.gain[g - 1]};
        row = batch_.add_row(row, own.reach_probability, own.gain);
        unclaimed_.back().reach_probability -= own.reach_probability;
        unclaimed_.back().gain -= own.gain;
        unclaimed_.push_back(own);
    }
    if (candidate.alternatives.empty() || n_main < std::ssize(candidate.evidence)) return;
    const int first = row - n_main + 1;
    const double again = std::max(value.extra(value.longest), 0.0) / value.longest;
    const double risk_exponent = verify_risk_exponent(request, candidate);
    for (const Alternative& alternative : candidate.alternatives) {
        double rate = acceptance_.rate(*request.regime, alternative.evidence, alternative.rank);
        weaken(rate, risk_exponent);
        NodeValue& left = unclaimed_[alternative.parent + 1];
        const NodeValue own{std::max(left.reach_probability, 0.0) * rate,
                            std::max(left.gain, 0.0) * rate};
        left.reach_probability -= own.reach_probability;
        left.gain -= own.gain;
        unclaimed_.push_back(own);
        batch_.add_row(
            alternative.parent < 0 ? VerificationBatch::kCommitted : first + alternative.parent,
            own.reach_probability, std::max(own.gain - own.reach_probability * again, 0.0));
    }
}

// Stores the selection in the plans. The time that drafts add to the decode is divided evenly among
// their rows.
void Planner::store(const BatchContext& context, std::span<RoundPlan> plans) {
    for (RoundPlan& plan : plans) plan.rows.clear();
    for (const VerificationBatch::Row& row : batch_.chosen()) {
        RoundPlan& plan = plans[row.sequence];
        plan.rows.push_back(row.number);
        ++plan.choice.n_draft;
        plan.choice.tokens += row.tokens;
        plan.choice.time_saved += row.gain;
    }
    int n_drafted = 0;
    for (const RoundPlan& plan : plans) n_drafted += plan.choice.n_draft;
    const double plain = decode_costs(context, context.n_rows)[context.n_rows];
    const double extra = batch_.seconds() - plain;
    const int n_rows = context.n_rows + n_drafted;
    const bool apart = this->apart(context);
    const WidthSwitch& widths = cost().width_switch();
    const int width =
        apart ? n_rows : widths.width(steady_costs(context, n_rows), n_rows, context.n_rows);
    const double switch_cost = apart || width == widths.last() ? 0 : widths.seconds();
    const double believed =
        apart ? batch_.seconds() : cost().seconds(width, context.n_context) + switch_cost;
    for (RoundPlan& plan : plans) {
        Choice& choice = plan.choice;
        if (choice.n_draft == 0) choice.candidate = -1;
        choice.seconds = believed;
        choice.n_sequences = context.n_sequences;
        choice.n_committed = context.n_rows;
        choice.n_drafted = n_drafted;
        choice.n_padding = width - n_rows;
        choice.width_switch_cost = switch_cost;
        if (choice.n_draft > 0) choice.time_saved -= extra * choice.n_draft / n_drafted;
    }
}

// The values of a draft that begins with `prefix` and is continued by the draft model up to the
// limit, in a decode where no other sequence drafts. seconds: what the model has taken so far.
const LengthValue& Planner::with_model(const RoundRequest& request, const Choice& choice,
                                       EvidenceSpan prefix, double seconds) {
    const int n_sequences = choice.n_sequences;
    const BatchContext context = {
        .n_sequences = n_sequences,
        .n_rows = request.n_pending + n_sequences - 1,
        .n_context = request.n_tokens,
        .spent = request.spent + request.overhead + std::max(seconds - prefill_cost(request), 0.0)};
    LengthValue& value = values_[0];
    value.longest = std::min(request.max_draft, draft_cost_.longest());
    predict(context, request, prefix, risk_exponent(total_regret(*request.regime)), value,
            draft_cost_.step(n_sequences, request.n_tokens));
    return value;
}

// Assumes that the model agrees with the tokens that are right.
int Planner::n_to_check(const RoundRequest& request, const Choice& choice) {
    if (choice.candidate < 0) return 0;
    const EvidenceSpan chosen = request.candidates[choice.candidate].evidence.first(choice.n_draft);
    const LengthValue& value = with_model(request, choice, chosen, 0);
    const double step = draft_cost_.step(choice.n_sequences, request.n_tokens);
    const auto time_saved = [&](int n) {
        return (value.tokens[n] - 1) * step - prefill_cost(request, n);
    };
    int best = 0;
    for (int n = 1; n <= std::min(choice.n_draft, value.longest); ++n)
        if (time_saved(n) > time_saved(best)) best = n;
    return best;
}

bool Planner::pays_to_read(const RoundRequest& request, double reading) const {
    TextRegime& regime = *request.regime;
    if (regime.n_deferred++ < tuning::kRoundsBeforeReading) return false;
    const int n_tokens = request.n_tokens - regime.start;
    const int n_to_come = std::min(request.n_left, tuning::kToCome + n_tokens);
    return n_to_come * regime.missed / (n_tokens + 1) >= tuning::kReadingMargin * reading;
}

bool Planner::should_continue(const RoundRequest& request, const RoundPlan& plan,
                              EvidenceSpan draft, double seconds) {
    const Choice& choice = plan.choice;
    const int n_drafted = static_cast<int>(draft.size());
    if (n_drafted >= std::min(request.max_draft, draft_cost_.longest())) return false;
    const double step = draft_cost_.step(choice.n_sequences, request.n_tokens);
    const bool begins = draft.empty() || draft.back().source != Source::model;
    const double reading = begins ? prefill_cost(request) : 0;
    const LengthValue& value = with_model(request, choice, draft, seconds);
    // The most that stopping now would save. Once the model has drafted, its draft replaces the
    // choice.
    const double so_far =
        begins ? choice.time_saved : value.most_time_saved(0, std::min(n_drafted, value.longest));
    const double draft_budget = tuning::kDraftBudget * cost().seconds(1, request.n_tokens);
    const double time_saved = value.most_time_saved(n_drafted + 1, value.longest) - so_far;
    // The mean saving over all regimes if the regime of the text were known.
    double expected = 0;
    for (int regime = 0; regime < kRegimes; ++regime) {
        double most = 0;
        for (int g = n_drafted + 1; g <= value.longest; ++g)
            most = std::max(most, value.time_saved_in(regime, g) - so_far);
        expected += value.regimes[regime] * most;
    }
    if (begins) request.regime->missed += expected;
    if (reading > step) {
        if (!pays_to_read(request, reading)) return false;
        if (time_saved > 0) return draft_cost_.net_gain() >= -draft_budget;
    }
    if (time_saved > 0 || !begins) return time_saved > 0;
    // Otherwise it is tried if it would pay in some regime and its net gain allows the loss.
    // Checking a draft always counts as useful: where the two disagree, the model is usually right.
    return (expected > 0 || plan.n_to_check > 0) &&
           step + prefill_cost(request, plan.n_to_check) <= draft_cost_.net_gain() + draft_budget;
}

double Planner::break_even(int n_context) const {
    const double step = draft_cost_.step(1, n_context);
    if (step <= 0 || !cost().measured(1)) return 0;
    const int longest = draft_cost_.longest();
    std::array<double, kMaxSpecLength + 1> seconds;  // [g]: for a round that drafts g tokens
    for (int g = 0; g <= longest; ++g)
        seconds[g] = draft_cost_.n_steps(g, 0) * step + cost().seconds(1 + g, n_context);
    for (int percent = 1; percent <= 100; ++percent) {
        double reached = 1;
        double tokens = 1;
        for (int g = 1; g <= longest; ++g) {
            reached *= percent / 100.0;
            tokens += reached;
            if (tokens * seconds[0] > seconds[g]) return percent / 100.0;
        }
    }
    return kNeverPays;
}

void Planner::learn(const RoundRequest& request, const RoundPlan& plan,
                    const RoundOutcome& outcome) {
    const Choice& choice = plan.choice;
    // Seconds of this decode with n_drafted drafted tokens, by the current cost curve.
    const auto took = [&](int n_drafted) {
        return cost().seconds(choice.n_committed + n_drafted, request.n_tokens);
    };
    const double plain = took(0);
    const double token_seconds = (plain + request.overhead) / choice.n_sequences;
    // Seconds that the draft model has saved, compared with the choice without it. Drafting without
    // a resulting token counts as well.
    double time_saved = 0;
    if (plan.without_draft_model) {
        const Choice& other = *plan.without_draft_model;
        double right = 0;
        if (other.candidate >= 0) right = std::min(outcome.n_right[other.candidate], other.n_draft);
        time_saved =
            (outcome.n_accepted - right) * token_seconds - request.spent / choice.n_sequences;
        time_saved -=
            took(choice.n_drafted) - took(choice.n_drafted - choice.n_draft + other.n_draft);
    }
    for (std::size_t i = 0; i < request.candidates.size(); ++i) {
        const DraftCandidate& one = request.candidates[i];
        for (const Alternative& alternative : one.alternatives)
            if (alternative.right.has_value() && alternative.rank > 0)
                acceptance_.observe_sibling(*request.regime, alternative.evidence, alternative.rank,
                                            *alternative.right);
        const int n_known = one.n_known;
        const int n_own = static_cast<int>(one.evidence.size()) - n_known - one.n_rest;
        if (n_own > 0)
            acceptance_.observe(*request.regime, request.n_tokens + n_known,
                                one.evidence.subspan(n_known, n_own), outcome.n_right[i] - n_known,
                                outcome.n_judged - n_known);
    }
    const double part = choice.n_draft / std::max<double>(choice.n_drafted, 1);
    const double more =
        took(choice.n_drafted + choice.n_padding) + choice.width_switch_cost - plain;
    const double extra = part * more + took(outcome.n_repeated) - plain;
    draft_cost_.account(time_saved, (outcome.n_accepted + 1) * token_seconds,
                        outcome.n_accepted + 1);
    TextRegime& regime = *request.regime;
    if (choice.candidate >= 0)
        regime.regret[source_group(request.candidates[choice.candidate])] +=
            extra - outcome.n_accepted * token_seconds;
    regime.spent += (request.spent - prefill_spent(request, plan)) / choice.n_sequences;
    // Switching back to the base width, and padding, are costs of earlier drafts.
    if (choice.n_drafted == 0) regime.spent += more / choice.n_sequences;
    regret_ = regime.regret;
    spent_ = regime.spent;
}

}  // namespace specllama
