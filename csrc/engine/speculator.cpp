#include "engine/speculator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "draft/grammar_drafter.h"
#include "engine/clock.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// Most tokens drawn from frequencies in one draft: what was drawn must be verified, whatever is
// known of it, so the planner cannot shorten such a draft.
constexpr int kLongestDrawn = 4;

void record_error(Sequence& sequence, const std::string& message) {
    ++sequence.stats.drafter_errors;
    sequence.stats.last_drafter_error = message;
}

// Calls the drafter about one sequence; what it throws as an Error is recorded, no more.
template <typename Call>
void contained(Sequence& sequence, Call call) {
    const Timer timer(sequence.stats.seconds.draft);
    try {
        call();
    } catch (const Error& error) {
        record_error(sequence, error.what());
    }
}

// What is wrong with a proposal, or "".
std::string fault(const Proposal& proposal, const Vocab& vocab) {
    if (!proposal.error.empty()) return proposal.error;
    if (!proposal.draft.whole())
        return "The drafter proposed tokens without evidence, or with some of no source there is; "
               "add them by Draft::push.";
    if (proposal.draft.size() > proposal.max_tokens)
        return "The drafter proposed " + std::to_string(proposal.draft.size()) +
               " tokens; at most " + std::to_string(proposal.max_tokens) + " were asked for.";
    for (const Token token : proposal.draft.tokens)
        if (!vocab.contains(token))
            return "The drafter proposed token " + std::to_string(token) + "; the model has " +
                   std::to_string(vocab.size()) + " tokens.";
    return "";
}

bool is_drawn(const Draft& draft) {
    return std::ranges::any_of(draft.drawn_from, [](const Distribution* from) { return from; });
}

// Nothing comes behind a token that ends the generation: of a conversation, say, the next turn's
// header. (Where a drawn draft is verified must not depend on what was drawn.)
void cut_behind_end(Draft& draft, const Vocab& vocab) {
    const auto ends = [&](Token token) { return vocab.is_end(token); };
    const auto end = std::ranges::find_if(draft.tokens, ends);
    if (end == draft.tokens.end() || is_drawn(draft)) return;
    draft.truncate(static_cast<int>(end - draft.tokens.begin()) + 1);
}

}  // namespace

Speculator::Speculator(std::vector<std::shared_ptr<Drafter>> drafters,
                       std::optional<int> spec_length, const Vocab& vocab, bool pads, bool alike)
    : drafters_(std::move(drafters)),
      grammar_(std::make_unique<GrammarDrafter>(vocab)),
      spec_length_(spec_length),
      vocab_(&vocab),
      planner_(pads, alike),
      proposals_(drafters_.size() + 2) {
    if (speculates()) reader_ = dynamic_cast<StateReader*>(drafters_.back().get());
}

void Speculator::begin(Sequence& sequence, TokenSpan reference) {
    const double temperature = sequence.sampler().options().temperature;
    phases_[sequence.id()] = planner_.begin(temperature, sequence.n_tokens());
    grammar_->begin(sequence.id(), sequence.tokens(), reference);
    for (const auto& drafter : drafters_)
        contained(sequence, [&] { drafter->begin(sequence.id(), sequence.tokens(), reference); });
}

void Speculator::end(Sequence& sequence) {
    grammar_->end(sequence.id());
    for (const auto& drafter : drafters_) contained(sequence, [&] { drafter->end(sequence.id()); });
    phases_.erase(sequence.id());
    if (!plans()) return;
    sequence.stats.decode_seconds = planner_.cost().points().seconds;
    if (planner_.draft_cost().measured())
        sequence.stats.draft_step_seconds = planner_.draft_cost().seconds(1, 0);
}

void Speculator::propose(std::span<Sequence* const> sequences, std::span<const int> limits) {
    const std::size_t n = sequences.size();
    turns_.resize(n);
    work_.resize(n);
    bool wanted = false;
    for (std::size_t i = 0; i < n; ++i) {
        const Sequence& sequence = *sequences[i];
        Turn& turn = turns_[i];
        turn.phase = &phases_.at(sequence.id());
        turn.n_tokens = sequence.n_tokens();
        turn.n_pending = static_cast<int>(sequence.pending().size());
        turn.max_draft = std::min(limits[i], longest());
        turn.spent = 0;
        turn.place = sequence.id();
        turn.offers.clear();
        turn.choice = {};
        work_[i].replays = sequence.replays();
        work_[i].n_prefix = 0;
        work_[i].n_forced = 0;
        work_[i].verified.clear();
        wanted |= turn.max_draft > 0;
    }
    for (std::size_t row = 0; row < proposals_.size(); ++row) prepare(row, sequences);
    if (!wanted) return;
    ask(forced(), sequences);
    const bool costly = drafters_.back()->costly();
    for (std::size_t d = 0; d < drafters_.size(); ++d) {
        if (!plans()) {
            if (d + 1 < drafters_.size() && costly) continue;
            go_on_from_forced(d, sequences);
        } else if (drafters_[d]->costly()) {
            choose(sequences);
            ask_costly(sequences);
        } else {
            ask(d, sequences);
            if (d == 0) go_on_from_forced(beyond(), sequences);
        }
    }
    choose(sequences);
}

Drafter& Speculator::drafter(std::size_t row) {
    return row == forced() ? *grammar_ : *drafters_[row == beyond() ? 0 : row];
}

// Empties the proposals of a row for a round.
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
        proposal.max_drawn =
            plans() ? std::min(proposal.max_tokens, kLongestDrawn) : proposal.max_tokens;
        proposal.another = nullptr;
    }
}

// Asks a row's drafter to go on from what grammars force, where they do: in `beyond` only there.
// Of a proposal that went no further than that nothing is left.
void Speculator::go_on_from_forced(std::size_t row, std::span<Sequence* const> sequences) {
    bool asked = row != beyond();
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        const Draft& forced_draft = proposals_[forced()][i].draft;
        Proposal& proposal = proposals_[row][i];
        work_[i].n_forced = forced_draft.size();
        if (forced_draft.empty()) {
            if (row == beyond()) proposal.max_tokens = 0;
            continue;
        }
        asked = true;
        proposal.draft = forced_draft;
        // What is drawn from frequencies is drawn for the token after the text.
        if (!drafter(row).costly()) proposal.max_drawn = 0;
    }
    if (!asked) return;
    ask(row, sequences);
    for (std::size_t i = 0; i < sequences.size(); ++i)
        if (Draft& draft = proposals_[row][i].draft; draft.size() == work_[i].n_forced)
            draft.clear();
}

// Asks a row's drafter about all sequences at once.
double Speculator::ask(std::size_t row, std::span<Sequence* const> sequences) {
    double seconds = 0;
    std::string error;
    {
        const Timer timer(seconds);
        try {
            drafter(row).propose(proposals_[row]);
        } catch (const Error& thrown) {
            error = thrown.what();
        }
    }
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        Sequence& sequence = *sequences[i];
        Proposal& proposal = proposals_[row][i];
        sequence.stats.seconds.draft += seconds;
        sequence.stats.draft_decoded_tokens += proposal.n_decoded;
        turns_[i].spent += seconds;
        const std::string wrong = error.empty() ? fault(proposal, *vocab_) : error;
        if (wrong.empty()) {
            if (!sequence.replays()) cut_behind_end(proposal.draft, *vocab_);
            continue;
        }
        record_error(sequence, wrong);
        proposal.draft.clear();
    }
    return seconds;
}

// Asks the costly drafter, which goes on from what the cheap ones have that is worth verifying.
void Speculator::ask_costly(std::span<Sequence* const> sequences) {
    const std::size_t last = drafters_.size() - 1;
    std::vector<Proposal>& proposals = proposals_[last];
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        Work& work = work_[i];
        const Draft& prefix = work.verified;
        // Of what the others have drafted, a head has no states to go on from.
        work.n_prefix = is_drawn(prefix) || reader_ != nullptr ? 0 : prefix.size();
        if (work.n_prefix > 0) proposals[i].draft = prefix;
        work.started = Clock::now();
        work.another = [this, i](const Draft& draft) { return another(i, draft); };
        proposals[i].another = &work.another;
    }
    const double seconds = ask(last, sequences);
    int n_steps = 0;
    int n_drafted = 0;
    int n_decoded = 0;
    int n_drafting = 0;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        const int n = proposals[i].draft.size() - work_[i].n_prefix;
        n_steps = std::max(n_steps, n);
        n_drafted += n;
        n_decoded += proposals[i].n_decoded;
        n_drafting += n > 0;
    }
    // A step's time shows where nothing else was decoded: no prompt, no long gap.
    if (n_steps > 0 && n_decoded <= n_drafted + n_drafting)
        planner_.observe_draft_decode((n_drafted + n_steps - 1) / n_steps, turns_[0].n_tokens,
                                      seconds / n_steps);
}

bool Speculator::another(std::size_t i, const Draft& draft) {
    const Work& work = work_[i];
    if (!work.replays && !draft.empty() && draft.drawn_from.back() == nullptr &&
        vocab_->is_end(draft.tokens.back()))
        return false;
    const double asked = std::chrono::duration<double>(Clock::now() - work.started).count();
    return planner_.goes_on(turns_[i], draft.evidence, asked, static_cast<int>(turns_.size()) - 1);
}

// Settles what is verified of the drafts at hand.
void Speculator::choose(std::span<Sequence* const> sequences) {
    double seconds = 0;
    {
        const Timer timer(seconds);
        for (std::size_t i = 0; i < sequences.size(); ++i) offer(i);
        if (plans()) planner_.choose(turns_);
        for (std::size_t i = 0; i < sequences.size(); ++i) verify(i);
    }
    for (Sequence* sequence : sequences) sequence->stats.seconds.draft += seconds;
}

void Speculator::offer(std::size_t i) {
    Turn& turn = turns_[i];
    turn.offers.clear();
    for (std::size_t row = 0; row < proposals_.size(); ++row) {
        const Proposal& proposal = proposals_[row][i];
        const int n_known = row == beyond()               ? work_[i].n_forced
                            : proposal.another == nullptr ? 0
                                                          : work_[i].n_prefix;
        const bool drawn = is_drawn(proposal.draft);
        // What the costly drafter has drawn is verified, whatever it is.
        const bool required =
            drawn && proposal.another != nullptr && proposal.draft.size() > n_known;
        turn.offers.push_back({proposal.draft.evidence, n_known, drawn, required, 0});
    }
    if (plans()) return;
    const auto first = std::ranges::find_if(
        turn.offers, [](const Offer& offer) { return !offer.evidence.empty(); });
    if (first == turn.offers.end()) return;
    turn.choice.offer = static_cast<int>(first - turn.offers.begin());
    turn.choice.n_draft = static_cast<int>(first->evidence.size());
}

// Takes over what was chosen.
void Speculator::verify(std::size_t i) {
    const Choice& choice = turns_[i].choice;
    Draft& verified = work_[i].verified;
    verified.clear();
    if (choice.offer < 0) return;
    const Draft& chosen = proposals_[choice.offer][i].draft;
    for (int t = 0; t < choice.n_draft; ++t)
        verified.push(chosen.tokens[t], chosen.evidence[t], chosen.drawn_from[t]);
}

void Speculator::absorb(Sequence& sequence, Position first, std::span<const int> rows) {
    contained(sequence, [&] { reader_->absorb(sequence.id(), sequence.tokens(), first, rows); });
}

void Speculator::observe_decode(int n, int n_context, double seconds) {
    if (plans()) planner_.observe_decode(n, n_context, seconds);
}

void Speculator::observe(std::size_t i, Sequence& sequence, int n_accepted, Token next,
                         double seconds) {
    const Draft& verified = work_[i].verified;
    for (int t = 0; t < verified.size(); ++t) {
        auto& count = sequence.stats.by_source[static_cast<int>(verified.evidence[t].source)];
        ++count.drafted;
        count.accepted += t < n_accepted;
    }
    Turn& turn = turns_[i];
    turn.n_accepted = n_accepted;
    turn.n_judged = n_accepted + (next >= 0 ? 1 : 0);
    if (sequence.traces()) trace(i, sequence, next, seconds);
    if (plans()) {
        const Timer timer(sequence.stats.seconds.draft);
        judge(i, next);
        planner_.learn(turn);
    }
    if (verified.empty() || next < 0 || sequence.done()) return;
    for (const auto& drafter : drafters_)
        contained(sequence, [&] { drafter->observe(sequence.id(), verified, n_accepted, next); });
}

void Speculator::trace(std::size_t i, Sequence& sequence, Token next, double seconds) {
    const Turn& turn = turns_[i];
    const Draft& verified = work_[i].verified;
    RoundTrace& trace = sequence.trace.emplace_back();
    trace.position = turn.n_tokens - sequence.stats.prompt_tokens;
    for (int t = 0; t < verified.size(); ++t) {
        const Evidence& evidence = verified.evidence[t];
        trace.draft.push_back(
            {verified.tokens[t], evidence.source, evidence.length, evidence.confidence});
    }
    trace.accepted = turn.n_accepted;
    trace.next = std::max(next, kNoToken);
    trace.draft_seconds = turn.spent;
    trace.decode_seconds = seconds;
    if (!plans()) return;
    trace.expected_tokens = turn.choice.tokens;
    trace.expected_seconds = turn.spent + turn.choice.seconds;
}

// How every draft did, also where another one was verified: the tokens that came judge all.
void Speculator::judge(std::size_t i, Token next) {
    Turn& turn = turns_[i];
    const Draft& verified = work_[i].verified;
    for (std::size_t d = 0; d < turn.offers.size(); ++d) {
        const Draft& draft = proposals_[d][i].draft;
        int& n_right = turn.offers[d].n_right;
        const int n = std::min(draft.size(), turn.n_judged);
        while (n_right < n && draft.tokens[n_right] ==
                                  (n_right < turn.n_accepted ? verified.tokens[n_right] : next))
            ++n_right;
    }
}

}  // namespace specllama
