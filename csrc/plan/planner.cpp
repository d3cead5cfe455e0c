#include "plan/planner.h"

#include <numeric>
#include <utility>

#include "plan/constants.h"

namespace specllama {

namespace {

double debt(const Phase& phase) {
    return std::accumulate(phase.debt.begin(), phase.debt.end(), phase.spent);
}

// The view of a candidate's own tokens.
std::size_t view_of(const DraftCandidate& candidate) {
    const int n_known = candidate.n_known < std::ssize(candidate.evidence) ? candidate.n_known : 0;
    return specllama::view_of(candidate.evidence[n_known].source);
}

int longest(const Turn& turn, EvidenceSpan draft) {
    return std::clamp(turn.max_draft, 0, std::min(static_cast<int>(draft.size()), kMaxSpecLength));
}

}  // namespace

Phase Planner::begin(double temperature, int n_prompt) const {
    Phase phase = acceptance_.begin(temperature, n_prompt);
    std::ranges::transform(debt_, phase.debt.begin(),
                           [](double one) { return std::max(one, 0.0); });
    const std::size_t model = specllama::view_of(Source::model);
    phase.spent = std::max(debt_[model] + spent_, 0.0) - phase.debt[model];
    return phase;
}

double Planner::caution(double debt) const {
    return 1 + tuning::kCautionPerToken * std::max(debt, 0.0) / cost_.seconds(1, 0);
}

// A draft that is there costs no more than its rows, so what went into making drafts does not count
// against it. What copies have lost says nothing about what a grammar forces, so the debt is that
// of its view; and what other views have gained may be lost again.
double Planner::caution_to_verify(const Turn& turn, const DraftCandidate& candidate) const {
    const Phase& phase = *turn.phase;
    return caution(std::min(phase.debt[view_of(candidate)], debt(phase) - phase.spent));
}

double Planner::catch_up(const Turn& turn, int n_guess) const {
    return draft_cost_.catch_up(turn.n_behind + n_guess, turn.n_tokens);
}

// Taking in the text serves later rounds too, so it is charged to the draft model's balance instead
// of to this round.
double Planner::taking_in(const Turn& turn) const {
    return turn.unasked ? std::min(catch_up(turn), turn.spent) : 0;
}

void Planner::choose(std::span<Turn> turns) {
    if (turns.empty()) return;
    Common all{.n_sequences = static_cast<int>(turns.size())};
    for (const Turn& turn : turns) {
        all.n_rows += turn.n_pending;
        all.n_context += turn.n_tokens / all.n_sequences;
        all.spent = std::max(all.spent, turn.spent - taking_in(turn) + turn.overhead);
    }
    allot(all, turns);
    write_down(all, turns);
    if (cost_.change().seconds() > 0 && !apart(all))
        cost_.change().learn(allotment_.tokens(), all.n_sequences, all.n_rows,
                             settled(all, all.n_rows + all.n_sequences));
}

void Planner::allot(const Common& common, std::span<Turn> turns) {
    allotment_.clear();
    for (Turn& turn : turns) enter(common, turn);
    const Allotment::Prices prices = this->prices(common, allotment_.n_most());
    if (apart(common))
        allotment_.allot_split(prices);
    else
        allotment_.allot(prices, turns.size() > 1 ? most_rows_ : Allotment::kAnyNumber);
}

// Fills a chain for a draft to which a draft model may add tokens, at `step` seconds each.
void Planner::foresee(const Common& common, const Turn& turn, EvidenceSpan draft, double caution,
                      Chain& chain, double step) const {
    chain.longest = acceptance_.foresee(*turn.phase, turn.n_tokens, draft, caution, chain.phases,
                                        std::span(chain.in_phase).first(chain.longest + 1));
    const auto prices = this->prices(common, common.n_rows + chain.longest);
    const int n_drafted = static_cast<int>(draft.size());
    for (int g = 0; g <= chain.longest; ++g)
        chain.seconds[g] = prices[common.n_rows + g] + std::max(g - n_drafted, 0) * step;
    const double plain = cost_.seconds(1, turn.n_tokens) + turn.overhead;
    chain.stake = tuning::kStake * plain + std::max(-debt(*turn.phase), 0.0);
    chain.weigh(common.n_sequences - 1, common.spent);
}

// Enters a sequence into the allotment, with the candidate that would save most.
void Planner::enter(const Common& common, Turn& turn) {
    turn.choice = {};
    double best = -kAny;
    auto& [first, second] = chains_;
    Chain* chosen = &first;
    Chain* other = &second;
    for (std::size_t i = 0; i < turn.candidates.size(); ++i) {
        const DraftCandidate& one = turn.candidates[i];
        other->longest = longest(turn, one.evidence);
        if (other->longest == 0) continue;
        foresee(common, turn, one.evidence, caution_to_verify(turn, one), *other);
        const double saved = one.required ? kAny : other->most_saved(1, other->longest);
        if (saved <= best) continue;
        best = saved;
        turn.choice.candidate = static_cast<int>(i);
        std::swap(chosen, other);
    }
    if (turn.choice.candidate < 0) {
        allotment_.add_sequence(turn.n_pending, 0, turn.place);
        return;
    }
    const DraftCandidate& candidate = turn.candidates[turn.choice.candidate];
    if (candidate.drawn && candidate.required) {
        turn.choice.n_draft = static_cast<int>(candidate.evidence.size());
        turn.choice.tokens = chosen->tokens[chosen->longest];
        turn.choice.saved = chosen->gain[chosen->longest];
        allotment_.add_sequence(turn.n_pending + turn.choice.n_draft, 0, turn.place);
        return;
    }
    allotment_.add_sequence(turn.n_pending, chosen->stake, turn.place, turn.max_rows);
    add_rows(turn, candidate, *chosen);
}

// Enters the rows of a draft and of its sides. An accepted side must come again with the next
// decode (Turn::n_again), so it gains less by the cost of a row.
void Planner::add_rows(const Turn& turn, const DraftCandidate& candidate, const Chain& chain) {
    const int n_trunk = candidate.sides.empty() ? chain.longest : longest(turn, candidate.evidence);
    left_.assign(1, {1, chain.token_worth});
    int row = Allotment::kCommitted;
    for (int g = 1; g <= n_trunk; ++g) {
        Reach own;
        if (g <= chain.longest)
            own = {chain.tokens[g] - chain.tokens[g - 1], chain.gain[g] - chain.gain[g - 1]};
        row = allotment_.add_row(row, own.tokens, own.gain);
        left_.back().tokens -= own.tokens;
        left_.back().gain -= own.gain;
        left_.push_back(own);
    }
    if (candidate.sides.empty() || n_trunk < std::ssize(candidate.evidence)) return;
    const int first = row - n_trunk + 1;
    const double again = std::max(chain.extra(chain.longest), 0.0) / chain.longest;
    const double caution = caution_to_verify(turn, candidate);
    for (const Side& side : candidate.sides) {
        double rate = acceptance_.rate(*turn.phase, side.evidence, side.rank);
        weaken(rate, caution);
        Reach& left = left_[side.parent + 1];
        const Reach own{std::max(left.tokens, 0.0) * rate, std::max(left.gain, 0.0) * rate};
        left.tokens -= own.tokens;
        left.gain -= own.gain;
        left_.push_back(own);
        allotment_.add_row(side.parent < 0 ? Allotment::kCommitted : first + side.parent,
                           own.tokens, std::max(own.gain - own.tokens * again, 0.0));
    }
}

// Writes the allotment into the turns. What drafts add to the decode is divided evenly among their
// rows.
void Planner::write_down(const Common& common, std::span<Turn> turns) {
    for (Turn& turn : turns) turn.rows.clear();
    for (const Allotment::Row& row : allotment_.chosen()) {
        Turn& turn = turns[row.sequence];
        turn.rows.push_back(row.number);
        ++turn.choice.n_draft;
        turn.choice.tokens += row.tokens;
        turn.choice.saved += row.gain;
    }
    int n_drafted = 0;
    for (const Turn& turn : turns) n_drafted += turn.choice.n_draft;
    const double plain = prices(common, common.n_rows)[common.n_rows];
    const double extra = allotment_.seconds() - plain;
    const int n_rows = common.n_rows + n_drafted;
    const bool apart = this->apart(common);
    const WidthChange& change = cost_.change();
    const int width = apart ? n_rows : change.width(settled(common, n_rows), n_rows, common.n_rows);
    const double to_change = apart || width == change.last() ? 0 : change.seconds();
    const double believed =
        apart ? allotment_.seconds() : cost_.seconds(width, common.n_context) + to_change;
    for (Turn& turn : turns) {
        Choice& choice = turn.choice;
        if (choice.n_draft == 0) choice.candidate = -1;
        choice.seconds = believed;
        choice.n_sequences = common.n_sequences;
        choice.n_committed = common.n_rows;
        choice.n_drafted = n_drafted;
        choice.n_padding = width - n_rows;
        choice.change = to_change;
        if (choice.n_draft > 0) choice.saved -= extra * choice.n_draft / n_drafted;
    }
}

// The chain of a draft that begins with `prefix` and that the draft model continues up to the cap,
// in a decode where no other sequence drafts. seconds: what the model has taken so far.
const Chain& Planner::with_model(const Turn& turn, EvidenceSpan prefix, double seconds) {
    const int n_sequences = turn.choice.n_sequences;
    const Common common = {
        .n_sequences = n_sequences,
        .n_rows = turn.n_pending + n_sequences - 1,
        .n_context = turn.n_tokens,
        .spent = turn.spent + turn.overhead + std::max(seconds - catch_up(turn), 0.0)};
    Chain& chain = chains_[0];
    chain.longest = std::min(turn.max_draft, kMaxSpecLength);
    foresee(common, turn, prefix, caution(debt(*turn.phase)), chain,
            draft_cost_.step(n_sequences, turn.n_tokens));
    return chain;
}

// The model mostly agrees with what is right.
int Planner::n_guess(const Turn& turn) {
    const Choice& choice = turn.choice;
    if (choice.candidate < 0) return 0;
    const EvidenceSpan chosen = turn.candidates[choice.candidate].evidence.first(choice.n_draft);
    const Chain& chain = with_model(turn, chosen, 0);
    const double step = draft_cost_.step(choice.n_sequences, turn.n_tokens);
    const auto saved = [&](int n) { return (chain.tokens[n] - 1) * step - catch_up(turn, n); };
    int best = 0;
    for (int n = 1; n <= std::min(choice.n_draft, chain.longest); ++n)
        if (saved(n) > saved(best)) best = n;
    return best;
}

bool Planner::goes_on(const Turn& turn, EvidenceSpan draft, double seconds) {
    const int n_drafted = static_cast<int>(draft.size());
    if (n_drafted >= std::min(turn.max_draft, kMaxSpecLength)) return false;
    const double step = draft_cost_.step(turn.choice.n_sequences, turn.n_tokens);
    const bool begins = draft.empty() || draft.back().source != Source::model;
    const double behind = begins ? catch_up(turn) : 0;
    const Chain& chain = with_model(turn, draft, seconds);
    // The most that could be saved by stopping now. Once it has drafted, its draft replaces what
    // was chosen.
    const double so_far =
        begins ? turn.choice.saved : chain.most_saved(0, std::min(n_drafted, chain.longest));
    const double stake = tuning::kStake * cost_.seconds(1, turn.n_tokens);
    const double saved = chain.most_saved(n_drafted + 1, chain.longest) - so_far;
    // What would be saved if the phase of the text were known, in the mean of all.
    double expected = 0;
    for (int phase = 0; phase < kPhases; ++phase) {
        double most = 0;
        for (int g = n_drafted + 1; g <= chain.longest; ++g)
            most = std::max(most, chain.saved_in(phase, g) - so_far);
        expected += chain.phases[phase] * most;
    }
    if (behind > step) {
        // As tokens are valued by what they cost at the best length, that much is saved with each
        // token to come.
        const int n_to_come = std::min(turn.n_left, tuning::kToCome * turn.phase->n_waited++);
        if (n_to_come * expected < tuning::kReadingMargin * behind) return false;
        if (saved > 0) return draft_cost_.balance() >= -stake;
    }
    if (saved > 0 || !begins) return saved > 0;
    // Otherwise it is tried if it would pay in some phase and its balance allows the loss. To check
    // a draft always seems to pay: where the two name different tokens, it is mostly right.
    return (expected > 0 || turn.n_guess > 0) &&
           step + catch_up(turn, turn.n_guess) <= draft_cost_.balance() + stake;
}

void Planner::learn(const Turn& turn) {
    const Choice& choice = turn.choice;
    // Seconds of this decode with n_drafted drafted tokens, as now expected.
    const auto took = [&](int n_drafted) {
        return cost_.seconds(choice.n_committed + n_drafted, turn.n_tokens);
    };
    const double plain = took(0);
    const double token_seconds = (plain + turn.overhead) / choice.n_sequences;
    // Seconds that the draft model has saved, beside the choice without it. Drafting that yielded
    // no token counts as well.
    double saved = 0;
    if (turn.unasked) {
        const Choice& other = *turn.unasked;
        double right = 0;
        if (other.candidate >= 0)
            right = std::min(turn.candidates[other.candidate].n_right, other.n_draft);
        saved = (turn.n_accepted - right) * token_seconds - turn.spent / choice.n_sequences;
        saved -= took(choice.n_drafted) - took(choice.n_drafted - choice.n_draft + other.n_draft);
    }
    for (const DraftCandidate& one : turn.candidates) {
        for (const Side& side : one.sides)
            if (side.right.has_value() && side.rank > 0)
                acceptance_.observe_sibling(*turn.phase, side.evidence, side.rank, *side.right);
        const int n_known = one.n_known;
        const int n_own = static_cast<int>(one.evidence.size()) - n_known - one.n_rest;
        if (n_own > 0)
            acceptance_.observe(*turn.phase, turn.n_tokens + n_known,
                                one.evidence.subspan(n_known, n_own), one.n_right - n_known,
                                turn.n_judged - n_known);
    }
    const double part = choice.n_draft / std::max<double>(choice.n_drafted, 1);
    const double more = took(choice.n_drafted + choice.n_padding) + choice.change - plain;
    const double extra = part * more + took(turn.n_again) - plain;
    draft_cost_.account(saved, (turn.n_accepted + 1) * token_seconds, turn.n_accepted + 1);
    Phase& phase = *turn.phase;
    if (choice.candidate >= 0)
        phase.debt[view_of(turn.candidates[choice.candidate])] +=
            extra - turn.n_accepted * token_seconds;
    phase.spent += (turn.spent - taking_in(turn)) / choice.n_sequences;
    // Going back, and rows that pad the decode, are what earlier drafts have cost.
    if (choice.n_drafted == 0) phase.spent += more / choice.n_sequences;
    debt_ = phase.debt;
    spent_ = phase.spent;
}

}  // namespace specllama
