#include "engine/speculator.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "draft/ngram/rest.h"
#include "engine/proposal_check.h"
#include "engine/round_record.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// Tokens of a drawn draft where the planner decides whether it is verified, by what its tokens cost
// and by the chance of the first one. If there were more of them, how many would depend on what is
// drawn (on whether the text goes on that way), and so would the decision.
constexpr int kDrawn = 1;

// Most nodes of a tree that the planner chooses from. These are more than may be verified, since
// the longest draft alone can have that many.
constexpr int kMostOffered = 4 * kMaxSpecLength;

constexpr Tree::Limits kChains;

}  // namespace

Speculator::Speculator(std::vector<std::shared_ptr<Drafter>> drafters,
                       std::optional<int> spec_length, const Tree::Limits& limits,
                       const Vocabulary& vocab, Planner planner, bool takes_guesses)
    : drafters_(std::move(drafters)),
      grammar_(std::make_unique<GrammarDrafter>(vocab)),
      spec_length_(spec_length),
      limits_(limits),
      vocab_(&vocab),
      planner_(std::move(planner)),
      takes_guesses_(takes_guesses),
      proposals_(drafters_.size() + 2) {}

void Speculator::begin(Sequence& sequence, TokenSpan reference) {
    const double temperature = sequence.sampler().options().temperature;
    sequence.phase = planner_.begin(temperature, sequence.n_tokens());
    grammar_->begin(sequence.id(), sequence.tokens(), reference);
    for (const auto& drafter : drafters_)
        contained(sequence, [&] { drafter->begin(sequence.id(), sequence.tokens(), reference); });
}

void Speculator::end(Sequence& sequence) {
    grammar_->end(sequence.id());
    for (const auto& drafter : drafters_) contained(sequence, [&] { drafter->end(sequence.id()); });
    if (!plans()) return;
    sequence.stats.decode_seconds = planner_.cost().points().seconds;
    sequence.stats.draft_step_seconds = planner_.draft_cost().step(1, 0);
}

void Speculator::propose(std::span<Sequence* const> sequences, std::span<const DraftLimits> limits,
                         double overhead) {
    const std::size_t n = sequences.size();
    turns_.resize(n);
    work_.resize(n);
    bool wanted = false;
    for (std::size_t i = 0; i < n; ++i) {
        Sequence& sequence = *sequences[i];
        Turn& turn = turns_[i];
        turn.phase = &sequence.phase;
        turn.n_tokens = sequence.n_tokens();
        turn.n_pending = sequence.n_pending();
        turn.max_rows = limits[i].nodes;
        turn.n_left = sequence.n_tokens_left();
        turn.max_draft = sequence.given() != nullptr ? 0 : std::min(limits[i].depth, longest());
        turn.n_behind = 0;
        if (speculates())
            contained(sequence, [&] {
                turn.n_behind = drafters_.back()->n_behind(sequence.id(), turn.n_tokens);
            });
        turn.overhead = overhead;
        turn.spent = 0;
        turn.n_guess = 0;
        turn.unasked.reset();
        turn.place = sequence.id();
        turn.candidates.clear();
        turn.choice = {};
        work_[i].replays = sequence.replays();
        work_[i].n_prefix = work_[i].n_rest = 0;
        work_[i].verified.clear();
        wanted |= turn.max_draft > 0;
    }
    for (std::size_t row = 0; row < proposals_.size(); ++row) prepare(row, sequences);
    if (wanted) ask_all(sequences);
    for (std::size_t i = 0; i < n; ++i)
        if (sequences[i]->given() != nullptr) take_given(i, *sequences[i], limits[i]);
}

// It is verified as it is: its maker has planned it, and knows what a round costs there.
void Speculator::take_given(std::size_t i, const Sequence& sequence, DraftLimits limit) {
    if (sequence.in_prompt()) return;  // this round verifies nothing
    Work& work = work_[i];
    told_ = *sequence.given();
    if (!sequence.replays()) cut_behind_end(told_, *vocab_);
    given_.clear();
    given_.add(told_,
               {.nodes = limit.nodes, .leaves = limits_.leaves, .siblings = limits_.siblings});
    work.kept.clear();
    for (const Tree::Node& node : given_.nodes()) work.kept.push_back(node.depth < limit.depth);
    work.verified.take(given_, work.kept);
}

void Speculator::ask_all(std::span<Sequence* const> sequences) {
    ask(forced(), sequences);
    const bool costly = drafters_.back()->costly();
    for (std::size_t d = 0; d < drafters_.size(); ++d) {
        if (!plans()) {
            if (d + 1 < drafters_.size() && costly && limits_.siblings == 1) continue;
            go_on_from_forced(d, sequences);
        } else if (drafters_[d]->costly()) {
            choose(sequences, kChains);
            // If it drafts nothing, the choice stands, unless a tree has more beside it.
            if (!ask_costly(sequences) && limits_.siblings == 1) return;
        } else {
            ask(d, sequences);
            if (d == 0) go_on_from_forced(beyond(), sequences);
        }
    }
    choose(sequences, limits_);
}

Drafter& Speculator::drafter(std::size_t row) {
    return row == forced() ? *grammar_ : *drafters_[row == beyond() ? 0 : row];
}

// Resets the proposals of a row for a round.
void Speculator::prepare(std::size_t row, std::span<Sequence* const> sequences) {
    proposals_[row].resize(sequences.size());
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        Sequence& sequence = *sequences[i];
        Proposal& proposal = proposals_[row][i];
        proposal.sampler = &sequence.sampler();
        proposal.sequence = sequence.id();
        proposal.tokens = sequence.tokens();
        proposal.draft.clear();
        proposal.n_decoded = 0;
        proposal.error.clear();
        proposal.max_tokens = turns_[i].max_draft;
        const bool decided = plans() && !drafter(row).costly();
        proposal.max_drawn = decided ? std::min(proposal.max_tokens, kDrawn) : proposal.max_tokens;
        // Drawn drafts are verified whole, so the planner keeps them chains. (A draft model may
        // draw even where the target, at temperature 0, does not.)
        const bool draws = proposal.sampler->options().acceptance == AcceptanceRule::rejection;
        proposal.max_beside = plans() && draws ? 0 : limits_.siblings - 1;
        proposal.another = nullptr;
        proposal.guess = {};
    }
}

// Asks a row's drafter to continue from the tokens that grammars force. Row `beyond` asks it only
// for sequences that have such tokens. Proposals that add nothing to them are emptied.
void Speculator::go_on_from_forced(std::size_t row, std::span<Sequence* const> sequences) {
    bool asked = row != beyond();
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        const Draft& forced_draft = proposals_[forced()][i].draft;
        Proposal& proposal = proposals_[row][i];
        if (forced_draft.empty()) {
            if (row == beyond()) proposal.max_tokens = proposal.max_drawn = 0;
            continue;
        }
        asked = true;
        proposal.draft = forced_draft;
        // Frequencies are only drawn from for the token right after the text, not after forced
        // ones.
        if (!drafter(row).costly()) proposal.max_drawn = 0;
    }
    if (!asked) return;
    ask(row, sequences);
    for (std::size_t i = 0; i < sequences.size(); ++i)
        if (Draft& draft = proposals_[row][i].draft;
            draft.size() == proposals_[forced()][i].draft.size())
            draft.clear();
}

// Asks a row's drafter about all sequences at once. Returns the seconds it took.
double Speculator::ask(std::size_t row, std::span<Sequence* const> sequences) {
    std::string error;
    asked_ = Stopwatch();
    try {
        drafter(row).propose(proposals_[row]);
    } catch (const Error& thrown) {
        error = thrown.what();
    }
    const double seconds = asked_.seconds();
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        Sequence& sequence = *sequences[i];
        Proposal& proposal = proposals_[row][i];
        sequence.stats.seconds.draft += seconds;
        sequence.stats.draft_decoded_tokens += proposal.n_decoded;
        turns_[i].spent += seconds;
        const std::string wrong = error.empty() ? fault(proposal, *vocab_) : error;
        if (!wrong.empty()) {
            record_error(sequence, wrong);
            proposal.draft.clear();
        }
        if (!sequence.replays()) cut_behind_end(proposal.draft, *vocab_);
        contained(sequence, [&] { cut_where_forbidden(proposal.draft, sequence.sampler()); });
    }
    return seconds;
}

// Tells the costly drafter what was chosen of the cheap drafts: what a grammar forces is sure, and
// the rest is a guess.
void Speculator::tell_chosen(std::size_t i) {
    Work& work = work_[i];
    Proposal& proposal = proposals_[drafters_.size() - 1][i];
    const Tree& chosen = work.verified;
    work.guess.clear();
    if (!takes_guesses_) return;
    int& n = work.n_prefix;
    for (; n < chosen.size() && chosen[n].evidence.source == Source::grammar; ++n)
        proposal.draft.push(chosen[n].token, chosen[n].evidence);
    // What is drawn should not depend on guesses.
    if (proposal.sampler->options().acceptance == AcceptanceRule::rejection) return;
    const int n_checked = planner_.n_guess(turns_[i]);
    for (int t = n; t < n_checked; ++t) work.guess.push_back(chosen[t].token);
    proposal.guess = work.guess;
    turns_[i].n_guess = static_cast<int>(work.guess.size());
}

// Asks the costly drafter. Returns whether it has drafted anything.
bool Speculator::ask_costly(std::span<Sequence* const> sequences) {
    const std::size_t last = drafters_.size() - 1;
    std::vector<Proposal>& proposals = proposals_[last];
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        Work& work = work_[i];
        tell_chosen(i);
        work.another = [this, i](const Draft& draft) { return another(i, draft); };
        proposals[i].another = &work.another;
    }
    const double seconds = ask(last, sequences);
    int n_steps = 0;
    int n_drafted = 0;  // tokens that took a step
    int n_decoded = 0;
    int n_drafting = 0;  // sequences with tokens of the costly drafter's own
    std::int64_t n_context = 0;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        const TokenSpan all(proposals[i].draft.tokens);  // none at all if something went wrong
        const TokenSpan own = all.subspan(std::min<std::size_t>(work_[i].n_prefix, all.size()));
        const auto n = static_cast<int>(own.size());
        const auto n_guessed = std::ranges::mismatch(own, work_[i].guess).in1 - own.begin();
        if (n > 0 || proposals[i].n_decoded > 0) turns_[i].unasked = turns_[i].choice;
        n_decoded += proposals[i].n_decoded;
        if (n == 0) continue;
        const int n_here = std::max(n - static_cast<int>(n_guessed), 1);
        n_steps = std::max(n_steps, n_here);
        n_drafted += n_here;
        ++n_drafting;
        n_context += turns_[i].n_tokens;
        for (std::size_t row = 0; row < proposals_.size() && work_[i].n_rest == 0; ++row)
            work_[i].n_rest =
                add_rest(proposals[i].draft, proposals_[row][i].draft, turns_[i].max_draft);
    }
    if (n_steps > 0)
        planner_.draft_cost().observe(n_steps, n_drafted, std::max(n_decoded - n_drafted, 0),
                                      static_cast<int>(n_context / n_drafting), seconds);
    return n_steps > 0;
}

bool Speculator::another(std::size_t i, const Draft& draft) {
    const Work& work = work_[i];
    if (!work.replays && !draft.empty() && draft.drawn_from.back() == nullptr &&
        vocab_->is_end(draft.tokens.back()))
        return false;
    return planner_.goes_on(turns_[i], draft.evidence, asked_.seconds());
}

// Chooses what is verified of the drafts at hand.
void Speculator::choose(std::span<Sequence* const> sequences, const Tree::Limits& limits) {
    const Stopwatch watch;
    for (std::size_t i = 0; i < sequences.size(); ++i) list_candidates(i, limits);
    if (plans()) planner_.choose(turns_);
    for (std::size_t i = 0; i < sequences.size(); ++i) keep(i, limits);
    const double seconds = watch.seconds();
    for (Sequence* sequence : sequences) sequence->stats.seconds.draft += seconds;
}

void Speculator::list_candidates(std::size_t i, Tree::Limits limits) {
    Turn& turn = turns_[i];
    turn.candidates.clear();
    const bool trees = limits.siblings > 1;
    beside_.clear();
    if (trees) {
        for (const std::vector<Proposal>& of_row : proposals_) beside_.push_back(&of_row[i].draft);
        work_[i].joined.resize(proposals_.size());
    }
    for (std::size_t row = 0; row < proposals_.size(); ++row) {
        const Proposal& proposal = proposals_[row][i];
        const int n_known = row == beyond()               ? proposals_[forced()][i].draft.size()
                            : proposal.another == nullptr ? 0
                                                          : work_[i].n_prefix;
        const bool drawn = proposal.draft.drawn();
        // What the costly drafter has drawn must be verified, whatever it is. And of its own
        // choices it knows more than a copy does: where both agree, and where they do not.
        const bool required = proposal.another != nullptr && proposal.draft.size() > n_known;
        const int n_rest = proposal.another != nullptr ? work_[i].n_rest : 0;
        turn.candidates.push_back({proposal.draft.evidence, {}, n_known, n_rest, drawn, required});
        if (!trees) continue;
        JoinedDraft& joined = work_[i].joined[row];
        limits.nodes = plans() && !drawn ? kMostOffered : turn.max_rows;
        joined.join(beside_, row, limits);
        turn.candidates.back().sides = joined.sides;
    }
    if (!plans()) take_first(turn);
}

// With a fixed length, takes the costly drafter's draft, or else the first that is not empty.
void Speculator::take_first(Turn& turn) const {
    const auto is_one = [](const DraftCandidate& candidate) { return !candidate.evidence.empty(); };
    auto first = std::ranges::find_if(turn.candidates, is_one);
    if (first == turn.candidates.end()) return;
    const auto last = turn.candidates.begin() + std::ssize(drafters_) - 1;
    if (drafters_.back()->costly() && is_one(*last)) first = last;
    turn.choice.candidate = static_cast<int>(first - turn.candidates.begin());
    turn.choice.n_draft = static_cast<int>(first->evidence.size() + first->sides.size());
}

// Makes what was chosen the draft to verify.
void Speculator::keep(std::size_t i, const Tree::Limits& limits) {
    const Turn& turn = turns_[i];
    Work& work = work_[i];
    work.verified.clear();
    const Choice& choice = turn.choice;
    if (choice.candidate < 0) return;
    if (limits.siblings == 1) {
        work.verified.add(proposals_[choice.candidate][i].draft, {.nodes = choice.n_draft});
        return;
    }
    const Tree& tree = work.joined[choice.candidate].tree;
    const bool whole = !plans() || turn.candidates[choice.candidate].drawn;
    work.kept.assign(tree.size(), whole);
    for (const int row : turn.rows) work.kept[row] = true;
    work.verified.take(tree, work.kept);
}

void Speculator::observe(std::size_t i, Sequence& sequence, std::span<const int> path,
                         TokenSpan heard, double seconds) {
    Turn& turn = turns_[i];
    const Tree& verified = draft(i);
    const bool planned = plans() && sequence.given() == nullptr;
    record_round(sequence, turn, planned, verified, path, heard, seconds);
    turn.n_accepted = static_cast<int>(path.size());
    turn.n_judged = static_cast<int>(heard.size());
    turn.n_again = turn.n_accepted - n_in_trunk(path);
    if (planned) {
        const Timer timer(sequence.stats.seconds.draft);
        judge(i, heard);
        planner_.learn(turn);
    }
    if (!verified.empty() && heard.size() > path.size() && !sequence.done())
        tell(i, sequence, path, heard);
}

// A bias can forbid what the grammar leaves, and log-probabilities need logits.
Token Speculator::forced_token(Sequence& sequence) {
    const SamplingOptions& options = sequence.sampler().options();
    if (options.grammar.empty() || !options.logit_bias.empty() || options.logprobs >= 0)
        return kNoToken;
    Token token = kNoToken;
    contained(sequence, [&] {
        token = grammar_->forced(sequence.id(), sequence.tokens(), sequence.sampler());
    });
    return token;
}

// The drafters are told about the trunk only.
void Speculator::tell(std::size_t i, Sequence& sequence, std::span<const int> path,
                      TokenSpan heard) {
    told_.clear();
    for (const Tree::Node& node : draft(i).nodes().first(draft(i).n_trunk()))
        told_.push(node.token, node.evidence, node.drawn_from);
    const int n_accepted = n_in_trunk(path);
    for (const auto& drafter : drafters_)
        contained(sequence,
                  [&] { drafter->observe(sequence.id(), told_, n_accepted, heard[n_accepted]); });
}

// Finds how much of every draft was right, verified or not: the target's tokens judge all of them.
void Speculator::judge(std::size_t i, TokenSpan heard) {
    Turn& turn = turns_[i];
    for (std::size_t d = 0; d < turn.candidates.size(); ++d) {
        const TokenSpan tokens = proposals_[d][i].draft.tokens;
        const auto n_right = std::ranges::mismatch(tokens, heard).in1 - tokens.begin();
        turn.candidates[d].n_right = static_cast<int>(n_right);
        if (!turn.candidates[d].sides.empty()) work_[i].joined[d].judge(heard);
    }
}

}  // namespace specllama
