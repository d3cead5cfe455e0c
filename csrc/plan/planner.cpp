#include "plan/planner.h"

#include <algorithm>
#include <cmath>

#include "plan/constants.h"

namespace specllama {

namespace {

double speed(double tokens, double seconds) { return tokens / seconds; }

}  // namespace

void Planner::Backoff::found(bool something) {
    n_rounds = 0;
    interval = something ? tuning::kProbeIntervalLeast
                         : std::min(2 * interval, tuning::kProbeIntervalMost);
}

Phase Planner::begin(double temperature, int n_prompt) const {
    return acceptance_.begin(temperature, n_prompt);
}

double Planner::draft_step(int n_context) const {
    return draft_cost_.measured() ? draft_cost_.seconds(1, n_context)
                                  : tuning::kPriorDraftStep * cost_.seconds(1, n_context);
}

bool Planner::affordable(double loss) {
    if (lost_ + loss > tuning::kProbeShare * seconds_) return false;
    lost_ += loss;
    return true;
}

Choice Planner::choose(const Situation& situation, const Phase& phase,
                       std::span<const EvidenceSpan> drafts) {
    const auto decode = [&](int n_draft) {
        return cost_.seconds(situation.n_pending + n_draft, situation.n_tokens) +
               situation.overhead;
    };
    Choice best{.seconds = decode(0)};
    Choice hope = best;  // the best if costs are a little lower than believed
    double best_speed = speed(1, situation.spent + best.seconds);
    double hope_speed = 0;
    const int reference = std::min(situation.n_pending, CostCurve::kMaxTokens);
    for (std::size_t i = 0; i < drafts.size(); ++i) {
        const int cap = std::min({static_cast<int>(drafts[i].size()), situation.max_draft,
                                  kMaxSpecLength});
        Acceptance::Walk walk(acceptance_, phase, situation.n_tokens);
        double survival = 1;
        double tokens = 1;
        for (int g = 1; g <= cap; ++g) {
            survival *= walk.next(drafts[i][g - 1]);
            tokens += survival;
            const Choice choice{static_cast<int>(i), g, tokens, decode(g)};
            const double choice_speed = speed(tokens, situation.spent + choice.seconds);
            if (choice_speed > best_speed) {
                best = choice;
                best_speed = choice_speed;
            }
            const int n = situation.n_pending + g;
            if (n > CostCurve::kMaxTokens) continue;
            const double hoped =
                choice_speed * std::exp(cost_.doubt(n, reference));
            if (hoped > hope_speed) {
                hope = choice;
                hope_speed = hoped;
            }
        }
    }
    ++cost_probe_.n_rounds;
    probed_n_ = 0;
    if (hope_speed > tuning::kProbeGain * best_speed &&
        (hope.draft != best.draft || hope.n_draft != best.n_draft) && cost_probe_.due()) {
        const double loss =
            situation.spent + hope.seconds - hope.tokens / best_speed;
        if (affordable(std::max(loss, 0.0))) {
            probed_n_ = situation.n_pending + hope.n_draft;
            probed_seconds_ = hope.seconds - situation.overhead;
            hope.probe = true;
            return hope;
        }
    }
    return best;
}

bool Planner::another(const Situation& situation, const Phase& phase, EvidenceSpan draft,
                      const Choice& otherwise) {
    const int n_drafted = static_cast<int>(draft.size());
    const int cap = std::min(situation.max_draft, kMaxSpecLength);
    if (n_drafted >= cap) return false;
    const auto seconds = [&](int g) {
        return situation.spent + cost_.seconds(situation.n_pending + g, situation.n_tokens) +
               situation.overhead;
    };
    const double step = draft_step(situation.n_tokens);
    double bar = speed(1, seconds(0));
    bar = std::max(bar, speed(otherwise.tokens, situation.spent + otherwise.seconds));
    Acceptance::Walk walk(acceptance_, phase, situation.n_tokens);
    double survival = 1;
    double tokens = 1;
    for (int g = 1; g <= n_drafted; ++g) {
        survival *= walk.next(draft[g - 1]);
        tokens += survival;
        bar = std::max(bar, speed(tokens, seconds(g)));
    }
    double loss = 0;
    for (int g = n_drafted + 1; g <= cap; ++g) {
        survival *= walk.next(Source::model);
        tokens += survival;
        if (speed(tokens, seconds(g) + (g - n_drafted) * step) > bar) return true;
    }
    if (n_drafted > 0) return false;
    ++draft_probe_.n_rounds;
    loss = step;
    if (!draft_probe_.due() || !affordable(loss)) return false;
    draft_probe_.found(false);
    return true;
}

void Planner::observe_decode(int n, int n_context, double seconds) {
    if (n == probed_n_) {
        cost_probe_.found(seconds < tuning::kProbeSurprise * probed_seconds_);
        probed_n_ = 0;
    }
    cost_.observe(n, n_context, seconds);
    if (std::isfinite(seconds) && seconds > 0) seconds_ += seconds;
}

void Planner::observe_draft_decode(int n, int n_context, double seconds) {
    draft_cost_.observe(n, n_context, seconds);
}

}  // namespace specllama
