#include "plan/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/constants.h"

namespace specllama {

namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

// So often the worth of a token is found anew by what all sequences of a decode get from it.
constexpr int kPasses = 3;

int longest(const Turn& turn, EvidenceSpan draft) {
    return std::clamp(turn.max_draft, 0, std::min(static_cast<int>(draft.size()), kMaxSpecLength));
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

double Planner::stake(const Turn& turn) const {
    const double plain = cost_.seconds(1, turn.n_tokens) + turn.overhead;
    return tuning::kStake * plain + std::max(-turn.phase->debt, 0.0);
}

double Planner::draft_step(int n, int n_context) const {
    return (draft_cost_.measured() ? draft_cost_.seconds(n, n_context)
                                   : tuning::kPriorDraftStep * cost_.seconds(n, n_context)) /
           n;
}

double Planner::catch_up(const Turn& turn) const {
    if (!draft_cost_.measured()) return 0;
    const int n_behind = Acceptance::n_behind_model(*turn.phase, turn.n_tokens);
    return draft_cost_.seconds(1 + n_behind, turn.n_tokens) - draft_cost_.seconds(1, turn.n_tokens);
}

Planner::Common Planner::common(std::span<const Turn> turns) {
    Common all;
    all.n_sequences = static_cast<int>(turns.size());
    for (const Turn& turn : turns) {
        all.n_rows += turn.n_pending;
        all.n_context += turn.n_tokens / all.n_sequences;
        all.overhead = std::max(all.overhead, turn.overhead);
        all.spent = std::max(all.spent, turn.spent);
    }
    return all;
}

double Planner::decode_seconds(const Common& common, int n_rows) const {
    return seconds(n_rows, common.n_context) + common.overhead;
}

void Planner::choose(std::span<Turn> turns) {
    if (turns.empty()) return;
    Common all = common(turns);
    all.token_seconds = kAny;
    if (turns.size() == 1) {
        allot(all, turns);
    } else {
        all.token_seconds = (all.spent + decode_seconds(all, all.n_rows)) / all.n_sequences;
        for (int pass = 0; pass < kPasses; ++pass) {
            allot(all, turns);
            double tokens = 0;
            for (const double one : allotment_.tokens()) tokens += one;
            const double token_seconds = (all.spent + allotment_.seconds()) / tokens;
            if (token_seconds >= all.token_seconds) break;
            all.token_seconds = token_seconds;
        }
    }
    double most_caution = 0;
    for (const Turn& turn : turns) most_caution = std::max(most_caution, caution(*turn.phase));
    write_down(all, turns, probe(all, most_caution));
}

void Planner::allot(const Common& common, std::span<Turn> turns) {
    allotment_.clear();
    for (Turn& turn : turns) offer(common, turn);
    const Allotment::Price price = [&](int n) { return decode_seconds(common, n); };
    if (alike_ && turns.size() > 1)
        allotment_.allot_alike(price);
    else
        allotment_.allot(price);
}

void Planner::weigh(const Common& common, const Turn& turn, EvidenceSpan draft) {
    chain_.longest = longest(turn, draft);
    Acceptance::Forecast forecast(acceptance_, *turn.phase, turn.n_tokens, draft[0].source);
    for (int g = 0; g <= chain_.longest; ++g) {
        if (g > 0) forecast.add(draft[g - 1]);
        chain_.in_phase[g] = forecast.tokens();
        chain_.seconds[g] = decode_seconds(common, common.n_rows + g);
    }
    chain_.weigh({.phases = forecast.weights(),
                  .n_beside = common.n_sequences - 1,
                  .spent = common.spent,
                  .most_worth = common.token_seconds,
                  .caution = caution(*turn.phase),
                  .stake = stake(turn)});
}

// A sequence's part: of the drafts at hand the one that would save most if it were the only one in
// the decode.
void Planner::offer(const Common& common, Turn& turn) {
    turn.choice = {};
    double best = -kAny;
    allotment_.add_sequence(turn.n_pending, 1, stake(turn), turn.place, turn.max_rows);
    for (std::size_t i = 0; i < turn.offers.size(); ++i) {
        const Offer& one = turn.offers[i];
        if (one.evidence.empty()) continue;
        const int n = static_cast<int>(one.evidence.size());
        weigh(common, turn, one.drawn ? one.evidence.first(1) : one.evidence);
        if (chain_.longest == 0) continue;
        double saved = -kAny;
        if (one.required) {
            saved = kAny;
        } else if (one.drawn) {
            const double extra = decode_seconds(common, common.n_rows + n) - chain_.seconds[0];
            if (extra <= stake(turn)) saved = chain_.gain[1] - extra;
            if (saved <= 0) continue;
        } else {
            for (int g = 1; g <= chain_.longest; ++g)
                if (chain_.seconds[g] - chain_.seconds[0] <= stake(turn))
                    saved = std::max(saved, chain_.saved(g));
        }
        if (saved <= best) continue;
        best = saved;
        turn.choice.offer = static_cast<int>(i);
        allotment_.drop_sequence();
        if (one.drawn) {
            turn.choice.n_draft = n;
            allotment_.add_sequence(turn.n_pending + n, chain_.tokens[1], 0, turn.place);
            continue;
        }
        turn.choice.n_draft = 0;
        allotment_.add_sequence(turn.n_pending, 1, stake(turn), turn.place, turn.max_rows);
        add_rows(turn, one);
    }
}

// The rows of the draft that was weighed last, and of what is beside it. What is right there comes
// again with the next decode, see Turn::n_again, so that much less is gained.
void Planner::add_rows(const Turn& turn, const Offer& offer) {
    reach_.assign(1, {1, chain_.token_worth});
    int row = Allotment::kCommitted;
    for (int g = 1; g <= chain_.longest; ++g) {
        reach_.push_back(
            {chain_.tokens[g] - chain_.tokens[g - 1], chain_.gain[g] - chain_.gain[g - 1]});
        row = allotment_.add_row(row, reach_.back().tokens, reach_.back().gain);
    }
    if (chain_.longest < std::ssize(offer.evidence)) return;
    const int first = row - chain_.longest + 1;
    const double again =
        std::max(chain_.seconds[chain_.longest] - chain_.seconds[0], 0.0) / chain_.longest;
    for (const Side& side : offer.sides) {
        const Reach& before = reach_[side.parent + 1];
        const double rate = side.rank == 0
                                ? acceptance_.rate(*turn.phase, side.evidence)
                                : acceptance_.sibling_rate(*turn.phase, side.evidence, side.rank);
        // What is left of the parent once the elder siblings are wrong.
        Reach left = before;
        for (int elder = side.elder; elder >= 0;) {
            left.tokens -= reach_[elder + 1].tokens;
            left.gain -= reach_[elder + 1].gain;
            elder = elder < chain_.longest ? -1 : offer.sides[elder - chain_.longest].elder;
        }
        reach_.push_back({std::max(left.tokens, 0.0) * rate, std::max(left.gain, 0.0) * rate});
        const Reach& own = reach_.back();
        allotment_.add_row(side.parent < 0 ? Allotment::kCommitted : first + side.parent,
                           own.tokens, std::max(own.gain - own.tokens * again, 0.0));
    }
}

double Planner::hoped_gain(int n, int other, double seconds) const {
    if (std::min(n, other) < 1 || std::max(n, other) > CostCurve::kMaxTokens) return 0;
    return seconds * (1 - std::exp(-cost_.doubt(n, other)));
}

// Takes another number of rows if that may be better than the best that is known. Who is
// cautious hopes for less.
bool Planner::probe(const Common& common, double caution) {
    if (!cost_probe_.due()) return false;
    const int n_certain = allotment_.n_certain();
    const double credit = 1 / (1 + caution);
    const double best = allotment_.saved_by(allotment_.n_best());
    double hoped = best + credit * tuning::kProbeGain * allotment_.seconds();
    int hope = -1;
    for (int k = 0; k <= allotment_.n_candidates(); ++k) {
        const double gain = hoped_gain(n_certain + k, n_certain + allotment_.n_best(),
                                       decode_seconds(common, n_certain + k));
        const double saved = allotment_.saved_by(k) + credit * gain;
        if (saved <= hoped) continue;
        hope = k;
        hoped = saved;
    }
    if (hope < 0) return false;
    const double seconds = decode_seconds(common, n_certain + hope);
    if (!budget_.afford(
            std::max(best - allotment_.saved_by(hope), tuning::kProbeLeastLoss * seconds)))
        return false;
    allotment_.take(hope, [&](int n) { return decode_seconds(common, n); });
    cost_probe_.begin(width(n_certain + hope, common.n_context), seconds - common.overhead);
    return true;
}

// Writes down what the allotment says. What the drafts add to the decode is shared by their rows.
void Planner::write_down(const Common& common, std::span<Turn> turns, bool probe) {
    int n_drafted = 0;
    for (std::size_t i = 0; i < turns.size(); ++i) {
        turns[i].choice.n_draft += allotment_.lengths()[i];
        turns[i].rows.clear();
        n_drafted += turns[i].choice.n_draft;
    }
    for (const auto& [sequence, row] : allotment_.chosen()) turns[sequence].rows.push_back(row);
    const double plain = decode_seconds(common, common.n_rows);
    const double extra = allotment_.seconds() - plain;
    for (std::size_t i = 0; i < turns.size(); ++i) {
        Choice& choice = turns[i].choice;
        if (choice.n_draft == 0) choice.offer = -1;
        choice.tokens = allotment_.tokens()[i];
        choice.seconds = allotment_.seconds();
        choice.n_sequences = common.n_sequences;
        choice.n_committed = common.n_rows;
        choice.n_drafted = n_drafted;
        choice.saved = allotment_.gains()[i];
        if (choice.n_draft > 0) choice.saved -= extra * choice.n_draft / n_drafted;
        choice.probe = probe;
    }
}

bool Planner::goes_on(const Turn& turn, EvidenceSpan draft, double seconds, int n_beside) {
    const int n_drafted = static_cast<int>(draft.size());
    const int cap = std::min(turn.max_draft, kMaxSpecLength);
    if (n_drafted >= cap) return false;
    const Common common{.n_sequences = 1 + n_beside,
                        .n_rows = turn.n_pending + n_beside,
                        .n_context = turn.n_tokens,
                        .overhead = turn.overhead,
                        .spent = turn.spent + seconds,
                        .token_seconds = kAny};
    const double step = draft_step(common.n_sequences, turn.n_tokens);
    // Catching up pays for as long as a phase of the text lasts.
    const double behind = n_drafted == 0 ? catch_up(turn) : 0;
    const double most = stake(turn);
    Acceptance::Forecast forecast(acceptance_, *turn.phase, turn.n_tokens,
                                  draft.empty() ? Source::model : draft[0].source);
    chain_.longest = cap;
    for (int g = 0; g <= cap; ++g) {
        if (g > n_drafted)
            forecast.add(Source::model);
        else if (g > 0)
            forecast.add(draft[g - 1]);
        chain_.in_phase[g] = forecast.tokens();
        chain_.seconds[g] =
            decode_seconds(common, common.n_rows + g) + std::max(g - n_drafted, 0) * step;
        if (g > 0 && n_drafted == 0) chain_.seconds[g] += tuning::kPhaseEnd * behind;
    }
    const auto best_of = [&](int first, int last) {
        double best = -kAny;
        for (int g = first; g <= last; ++g)
            if (chain_.seconds[g] - chain_.seconds[0] <= most)
                best = std::max(best, chain_.saved(g));
        return best;
    };
    // What is saved by the best that is there already.
    const auto so_far = [&] { return std::max(turn.choice.saved, best_of(0, n_drafted)); };
    Chain::Terms terms{.phases = forecast.weights(),
                       .n_beside = n_beside,
                       .spent = common.spent,
                       .most_worth = kAny,
                       .caution = caution(*turn.phase),
                       .stake = most};
    const auto pays = [&](const Phase::Weights& phases) {
        terms.phases = phases;
        chain_.weigh(terms);
        return best_of(n_drafted + 1, cap) > so_far();
    };
    if (pays(forecast.weights())) return true;

    if (n_drafted > 0) return probe_longer(common, n_drafted, so_far(), step, terms.caution);
    if (!model_probe_.due()) return false;
    const auto may_pay = [&] {
        for (int s = 0; s < kPhases; ++s) {
            Phase::Weights only{};
            only[s] = 1;
            if (pays(only)) return true;
        }
        return false;
    };
    // What the model has to take in grows with every token of silence; then a longer silence pays
    // for it.
    if (!may_pay() || !budget_.afford(step + behind, model_probe_.n_missing() * step)) return false;
    model_probe_.begin();
    return true;
}

// Whether a longer draft, weighed in chain_, is worth a look, since its decode may be cheaper than
// believed.
bool Planner::probe_longer(const Common& common, int n_drafted, double best, double step,
                           double caution) {
    const double credit = 1 / (1 + caution);
    double hoped = best + credit * tuning::kProbeGain * chain_.seconds[0];
    double loss = -1;
    for (int g = n_drafted + 1; g <= chain_.longest; ++g) {
        const double gain = hoped_gain(common.n_rows + g, common.n_rows + n_drafted,
                                       decode_seconds(common, common.n_rows + g));
        const double hope = chain_.saved(g) + credit * gain;
        if (hope <= hoped) continue;
        hoped = hope;
        loss = std::max(best - chain_.saved(g), tuning::kProbeLeastLoss * chain_.seconds[g]);
    }
    return loss >= 0 && budget_.afford(step, loss);
}

void Planner::learn(const Turn& turn) {
    for (const Offer& one : turn.offers) {
        for (const Side& side : one.sides)
            if (side.heard && side.rank > 0)
                acceptance_.observe_sibling(*turn.phase, side.evidence, side.rank, side.right);
        const int n_known = one.n_known;
        if (std::ssize(one.evidence) <= n_known || one.n_right < n_known ||
            turn.n_judged <= n_known)
            continue;
        acceptance_.observe(*turn.phase, turn.n_tokens + n_known, one.evidence.subspan(n_known),
                            one.n_right - n_known, turn.n_judged - n_known);
        if (model_probe_.under_way() && one.evidence[n_known].source == Source::model)
            model_probe_.end(one.n_right > n_known);
    }
    // By what is known of the decode's time now.
    const Choice& choice = turn.choice;
    const double plain = seconds(choice.n_committed, turn.n_tokens) + turn.overhead;
    double extra =
        seconds(choice.n_committed + choice.n_drafted, turn.n_tokens) + turn.overhead - plain;
    if (choice.n_draft < choice.n_drafted)
        extra *= static_cast<double>(choice.n_draft) / choice.n_drafted;
    if (turn.n_again > 0)
        extra += seconds(choice.n_committed + turn.n_again, turn.n_tokens) + turn.overhead - plain;
    turn.phase->debt += extra + (turn.spent - (turn.n_accepted + tuning::kDebtForgiven) * plain) /
                                    choice.n_sequences;
    debt_ = turn.phase->debt;
}

void Planner::observe_decode(int n, int n_context, double seconds) {
    cost_probe_.observe(n, seconds);
    cost_.observe(n, n_context, seconds);
    if (std::isfinite(seconds) && seconds > 0) budget_.spend(seconds);
}

}  // namespace specllama
