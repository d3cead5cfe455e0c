#include "plan/planner.h"

#include <algorithm>
#include <cmath>

#include "plan/constants.h"

namespace specllama {

namespace {

// What a probe of this many seconds is believed to lose.
double probe_loss(double saved_by_best, double saved, double seconds) {
    return std::max(saved_by_best - saved, tuning::kProbeLeastLoss * seconds);
}

}  // namespace

Phase Planner::begin(double temperature, int n_prompt) const {
    Phase phase = acceptance_.begin(temperature, n_prompt);
    phase.debt = std::clamp(debt_, 0.0, tuning::kDebtCarried * cost_.seconds(1, 0));
    return phase;
}

double Planner::caution(const Phase& phase) const {
    return std::clamp(tuning::kCautionPerToken * phase.debt / cost_.seconds(1, 0), 0.0,
                      tuning::kCautionMost);
}

double Planner::stake(const Phase& phase) const {
    return tuning::kStake * cost_.seconds(1, 0) + std::max(-phase.debt, 0.0);
}

void Planner::settle(Phase& phase, const Situation& situation, int n_draft, int n_accepted) {
    // A decode's time, and that of drafting, is shared by the sequences in it.
    const int n_sequences = 1 + situation.n_beside;
    const double plain = decode_seconds(situation, 0);
    const double extra = decode_seconds(situation, n_draft) - plain + situation.spent / n_sequences;
    const double lost = extra - (n_accepted + tuning::kDebtForgiven) * plain / n_sequences;
    phase.debt = debt_ = phase.debt + lost;
}

double Planner::draft_step(const Situation& situation) const {
    const int n = 1 + situation.n_beside;
    return (draft_cost_.measured()
                ? draft_cost_.seconds(n, situation.n_tokens)
                : tuning::kPriorDraftStep * cost_.seconds(n, situation.n_tokens)) /
           n;
}

double Planner::catch_up(const Situation& situation, const Phase& phase) const {
    if (!draft_cost_.measured()) return 0;
    const int n_behind = Acceptance::n_behind_model(phase, situation.n_tokens);
    return draft_cost_.seconds(1 + n_behind, situation.n_tokens) -
           draft_cost_.seconds(1, situation.n_tokens);
}

bool Planner::affordable(double loss, double reserve) {
    if (lost_ + loss + reserve > tuning::kProbeShare * seconds_) return false;
    lost_ += loss;
    return true;
}

void Planner::Lengths::weigh(const Phase::Weights& phases, const Situation& situation,
                             double caution) {
    const auto beside = static_cast<float>(situation.n_beside);
    PhaseLanes best_speed{};
    for (int g = 0; g <= longest; ++g) {
        const auto rounds_per_second = static_cast<float>(1 / (situation.spent + seconds[g]));
        for (std::size_t s = 0; s < best_speed.size(); ++s)
            best_speed[s] = std::max(best_speed[s], (beside + tokens[g][s]) * rounds_per_second);
    }
    // What a token costs in each phase, at the length that is best there.
    Phase::Weights worth;
    for (int s = 0; s < kPhases; ++s) worth[s] = phases[s] / best_speed[s];
    for (int g = 0; g <= longest; ++g) {
        saved[g] = (1 + caution) * (seconds[0] - seconds[g]);
        expected[g] = 0;
        for (int s = 0; s < kPhases; ++s) {
            saved[g] += worth[s] * (tokens[g][s] - 1);
            expected[g] += phases[s] * tokens[g][s];
        }
    }
}

double Planner::decode_seconds(const Situation& situation, int n_draft) const {
    return cost_.seconds(situation.n_beside + situation.n_pending + n_draft, situation.n_tokens) +
           situation.overhead;
}

void Planner::expect(const Situation& situation, const Phase& phase, EvidenceSpan draft,
                     std::vector<double>& tokens) const {
    tokens.assign(1, 1);
    if (draft.empty()) return;
    const double credit = 1 / (1 + caution(phase));
    Acceptance::Forecast forecast(acceptance_, phase, situation.n_tokens, draft[0].source);
    const std::size_t n = std::min<std::size_t>(draft.size(), std::max(situation.max_draft, 0));
    for (const Evidence& evidence : draft.first(n)) {
        forecast.add(evidence);
        double more = 0;
        for (int s = 0; s < kPhases; ++s)
            more += forecast.weights()[s] * (forecast.tokens()[s] - 1);
        tokens.push_back(1 + credit * more);
    }
}

void Planner::weigh(const Situation& situation, const Phase& phase, EvidenceSpan draft) {
    lengths_.longest = std::clamp(situation.max_draft, 0,
                                  std::min(static_cast<int>(draft.size()), kMaxSpecLength));
    Acceptance::Forecast forecast(acceptance_, phase, situation.n_tokens, draft[0].source);
    for (int g = 0; g <= lengths_.longest; ++g) {
        if (g > 0) forecast.add(draft[g - 1]);
        lengths_.tokens[g] = forecast.tokens();
        lengths_.seconds[g] = decode_seconds(situation, g);
    }
    lengths_.weigh(forecast.weights(), situation, caution(phase));
}

double Planner::hoped_gain(const Situation& situation, int n_draft, int n_other) const {
    const int n = situation.n_pending + n_draft;
    const int other = situation.n_pending + n_other;
    if (std::min(n, other) < 1 || std::max(n, other) > CostCurve::kMaxTokens) return 0;
    return decode_seconds(situation, n_draft) * (1 - std::exp(-cost_.doubt(n, other)));
}

Choice Planner::choose(const Situation& situation, const Phase& phase,
                       std::span<const EvidenceSpan> drafts) {
    Choice best{.seconds = decode_seconds(situation, 0)};
    const double most = best.seconds + stake(phase);
    Choice hope;
    double hoped = 0;
    const EvidenceSpan* weighed = nullptr;  // the draft whose lengths are at hand
    // Twice: what to hope for depends on what is best.
    for (const bool hoping : {false, true}) {
        if (hoping && ++cost_probe_.n_rounds < cost_probe_.interval) break;
        if (hoping) hoped = best.saved + tuning::kProbeGain * best.seconds;
        for (std::size_t i = 0; i < drafts.size(); ++i) {
            if (drafts[i].empty()) continue;
            if (weighed != &drafts[i]) weigh(situation, phase, drafts[i]);
            weighed = &drafts[i];
            for (int g = 0; g <= lengths_.longest; ++g) {
                const Choice choice{g > 0 ? static_cast<int>(i) : -1, g, lengths_.expected[g],
                                    lengths_.seconds[g], lengths_.saved[g]};
                if (choice.seconds > most) continue;
                if (!hoping) {
                    if (choice.saved > best.saved) best = choice;
                    continue;
                }
                const double saved = choice.saved + hoped_gain(situation, g, best.n_draft);
                if (saved <= hoped) continue;
                hope = choice;
                hope.probe = true;
                hoped = saved;
            }
        }
    }
    if (!hope.probe || !affordable(probe_loss(best.saved, hope.saved, hope.seconds))) return best;
    cost_probe_.n_rounds = 0;
    cost_probe_.n = situation.n_pending + hope.n_draft;
    cost_probe_.seconds = hope.seconds - situation.overhead;
    return hope;
}

Choice Planner::likeliest(const Situation& situation, const Phase& phase,
                          std::span<const EvidenceSpan> drafts) {
    Choice best;
    for (std::size_t i = 0; i < drafts.size(); ++i) {
        if (drafts[i].empty()) continue;
        weigh(situation, phase, drafts[i].first(1));
        if (lengths_.expected[1] > best.tokens)
            best = {.draft = static_cast<int>(i),
                    .n_draft = static_cast<int>(drafts[i].size()),
                    .tokens = lengths_.expected[1]};
    }
    return best;
}

bool Planner::another(const Situation& situation, const Phase& phase, EvidenceSpan draft,
                      const Choice& otherwise) {
    const int n_drafted = static_cast<int>(draft.size());
    const int cap = std::min(situation.max_draft, kMaxSpecLength);
    if (n_drafted >= cap) return false;
    const double step = draft_step(situation);
    Acceptance::Forecast forecast(acceptance_, phase, situation.n_tokens,
                                  draft.empty() ? Source::model : draft[0].source);
    lengths_.longest = cap;
    for (int g = 0; g <= cap; ++g) {
        if (g > n_drafted)
            forecast.add(Source::model);
        else if (g > 0)
            forecast.add(draft[g - 1]);
        lengths_.tokens[g] = forecast.tokens();
        lengths_.seconds[g] = decode_seconds(situation, g) + std::max(g - n_drafted, 0) * step;
    }
    const auto saved = lengths_.saved.begin();
    const auto next = saved + n_drafted + 1;
    // What is saved by the best that is there already.
    const auto so_far = [&] { return std::max(otherwise.saved, *std::max_element(saved, next)); };
    const auto pays = [&](const Phase::Weights& phases) {
        lengths_.weigh(phases, situation, caution(phase));
        return *std::max_element(next, saved + cap + 1) > so_far();
    };
    if (pays(forecast.weights())) return true;

    // Probes. A longer draft is worth a look if its decode may be cheaper than believed.
    if (n_drafted > 0) {
        const double best = so_far();
        double hoped = best + tuning::kProbeGain * lengths_.seconds[0];
        double loss = -1;
        for (int g = n_drafted + 1; g <= cap; ++g) {
            const double hope = saved[g] + hoped_gain(situation, g, n_drafted);
            if (hope <= hoped) continue;
            hoped = hope;
            loss = probe_loss(best, saved[g], lengths_.seconds[g]);
        }
        return loss >= 0 && affordable(step, loss);
    }
    return ask_model(step, catch_up(situation, phase), [&](int s) {
        Phase::Weights only{};
        only[s] = 1;
        return pays(only);
    });
}

// A model that is never asked would never be known to have become better. It is asked for one token
// a round, as long as they are right, so that a run of them shows the phase that the text is in.
// What it has to take in for that may be more than is left for probes, since it grows with every
// token of silence; then a longer silence pays for it.
template <typename PaysIn>
bool Planner::ask_model(double step, double catch_up, PaysIn pays_in) {
    DraftProbe& probe = draft_probe_;
    ++probe.n_rounds;
    if (probe.n_right == 0 && probe.n_rounds < probe.interval) return false;
    bool may_pay = false;
    for (int s = 0; s < kPhases && !may_pay; ++s) may_pay = pays_in(s);
    if (lost_ + catch_up > tuning::kCatchUpShare * seconds_) return false;
    const int n_more = std::max(tuning::kProbeRun - 1 - probe.n_right, 0);
    probe.under_way = may_pay && affordable(step, n_more * step);
    if (probe.under_way) lost_ += catch_up;
    return probe.under_way;
}

void Planner::DraftProbe::end(bool right) {
    under_way = false;
    n_rounds = 0;
    if (right) {
        ++n_right;
        return;
    }
    interval = n_right < tuning::kProbeRun / 2 ? std::min(2 * interval, tuning::kProbeIntervalMost)
                                               : std::max(interval / 2, 1);
    n_right = 0;
}

void Planner::observe(Phase& phase, int n_tokens, EvidenceSpan draft, int n_right, int n_judged) {
    acceptance_.observe(phase, n_tokens, draft, n_right, n_judged);
    if (draft_probe_.under_way && !draft.empty() && draft[0].source == Source::model)
        draft_probe_.end(n_right > 0);
}

void Planner::observe_decode(int n, int n_context, double seconds) {
    if (n == cost_probe_.n) {
        double& interval = cost_probe_.interval;
        const bool cheaper = seconds < (1 - tuning::kProbeSurprise) * cost_probe_.seconds;
        interval =
            cheaper ? 1 : std::min(tuning::kProbeSpacing * interval, tuning::kProbeSpacingMost);
    }
    cost_probe_.n = 0;
    cost_.observe(n, n_context, seconds);
    if (std::isfinite(seconds) && seconds > 0) seconds_ += seconds;
}

}  // namespace specllama
