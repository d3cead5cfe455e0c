#include "engine/speculator.h"

#include <algorithm>
#include <string>
#include <utility>

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
                       std::optional<int> spec_length, const Vocab& vocab, bool alike)
    : drafters_(std::move(drafters)),
      spec_length_(spec_length),
      vocab_(&vocab),
      alike_(alike),
      inner_(drafters_.size() > 1 ? drafters_.front().get() : nullptr),
      proposals_(drafters_.size()) {}

void Speculator::begin(Sequence& sequence, TokenSpan reference) {
    const double temperature = sequence.sampler().options().temperature;
    phases_[sequence.id()] = planner_.begin(temperature, sequence.n_tokens());
    inner_.begin(sequence.id(), temperature, sequence.n_tokens());
    for (const auto& drafter : drafters_)
        contained(sequence, [&] { drafter->begin(sequence.id(), sequence.tokens(), reference); });
}

void Speculator::end(Sequence& sequence) {
    for (const auto& drafter : drafters_) contained(sequence, [&] { drafter->end(sequence.id()); });
    phases_.erase(sequence.id());
    inner_.end(sequence.id());
    if (!plans()) return;
    sequence.stats.decode_seconds = planner_.cost().points().seconds;
    if (planner_.draft_cost().measured())
        sequence.stats.draft_step_seconds = planner_.draft_cost().seconds(1, 0);
}

void Speculator::propose(std::span<Sequence* const> sequences, std::span<const int> limits) {
    const std::size_t n = sequences.size();
    rounds_.resize(n);
    bool wanted = false;
    for (std::size_t i = 0; i < n; ++i) {
        const Sequence& sequence = *sequences[i];
        Round& round = rounds_[i];
        round.situation = {.n_tokens = sequence.n_tokens(),
                           .n_pending = static_cast<int>(sequence.pending().size()),
                           .max_draft = std::min(limits[i], longest()),
                           .n_beside = static_cast<int>(n) - 1};
        round.replays = sequence.replays();
        round.choice = {};
        round.n_prefix = 0;
        round.verified.clear();
        wanted |= round.situation.max_draft > 0;
    }
    for (std::size_t d = 0; d < drafters_.size(); ++d) {
        proposals_[d].resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            Sequence& sequence = *sequences[i];
            Proposal& proposal = proposals_[d][i];
            proposal.sampler = &sequence.sampler();
            proposal.sequence = sequence.id();
            proposal.tokens = sequence.tokens();
            proposal.draft.clear();
            proposal.n_decoded = 0;
            proposal.error.clear();
            proposal.max_tokens = rounds_[i].situation.max_draft;
            proposal.max_drawn =
                plans() ? std::min(proposal.max_tokens, kLongestDrawn) : proposal.max_tokens;
            proposal.another = nullptr;
            // It knows of one draft at a time.
            proposal.guesser = n == 1 && drafters_[d]->costly() ? &inner_ : nullptr;
        }
    }
    if (!wanted) return;
    for (std::size_t d = 0; d < drafters_.size(); ++d) {
        const bool last = d + 1 == drafters_.size();
        if (!plans() || !drafters_[d]->costly()) {
            if (chooses() || last) ask(d, sequences);
            continue;
        }
        choose(sequences);
        ask_costly(sequences);
    }
    choose(sequences);
}

// Asks one drafter about all sequences at once.
double Speculator::ask(std::size_t drafter, std::span<Sequence* const> sequences) {
    double seconds = 0;
    std::string error;
    const std::int64_t n_guessed = inner_.n_guessed();
    const std::int64_t n_right = inner_.n_right();
    {
        const Timer timer(seconds);
        try {
            drafters_[drafter]->propose(proposals_[drafter]);
        } catch (const Error& thrown) {
            error = thrown.what();
        }
    }
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        Sequence& sequence = *sequences[i];
        Proposal& proposal = proposals_[drafter][i];
        sequence.stats.seconds.draft += seconds;
        sequence.stats.draft_decoded_tokens += proposal.n_decoded;
        sequence.stats.draft_guessed += static_cast<int>(inner_.n_guessed() - n_guessed);
        sequence.stats.draft_guessed_right += static_cast<int>(inner_.n_right() - n_right);
        rounds_[i].situation.spent += seconds;
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
        Round& round = rounds_[i];
        const Draft& prefix = round.verified;
        round.n_prefix = is_drawn(prefix) ? 0 : prefix.size();
        if (round.n_prefix > 0) proposals[i].draft = prefix;
        round.started = Clock::now();
        round.another = [this, i](const Draft& draft) { return another(i, draft); };
        proposals[i].another = &round.another;
    }
    const std::int64_t n_guessed = inner_.n_guessed();
    const double seconds = ask(last, sequences);
    int n_steps = 0;
    int n_drafted = 0;
    int n_decoded = 0;
    int n_drafting = 0;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        const int n = proposals[i].draft.size() - rounds_[i].n_prefix;
        n_steps = std::max(n_steps, n);
        n_drafted += n;
        n_decoded += proposals[i].n_decoded;
        n_drafting += n > 0;
    }
    // A step's time shows where nothing else was decoded: no prompt, no long gap.
    n_decoded -= static_cast<int>(inner_.n_guessed() - n_guessed);
    if (n_steps > 0 && n_decoded <= n_drafted + n_drafting)
        planner_.observe_draft_decode((n_drafted + n_steps - 1) / n_steps,
                                      rounds_[0].situation.n_tokens, seconds / n_steps);
}

bool Speculator::another(std::size_t i, const Draft& draft) {
    const Round& round = rounds_[i];
    if (!round.replays && !draft.empty() && draft.drawn_from.back() == nullptr &&
        vocab_->is_end(draft.tokens.back()))
        return false;
    Situation now = round.situation;
    now.spent += std::chrono::duration<double>(Clock::now() - round.started).count();
    const Phase& phase = phases_.at(proposals_.back()[i].sequence);
    return planner_.another(now, phase, draft.evidence, round.choice);
}

// Settles what is verified of the drafts at hand.
void Speculator::choose(std::span<Sequence* const> sequences) {
    double seconds = 0;
    {
        const Timer timer(seconds);
        if (plans() && sequences.size() > 1)
            share(sequences);
        else
            for (std::size_t i = 0; i < sequences.size(); ++i) choose(i);
    }
    for (Sequence* sequence : sequences) sequence->stats.seconds.draft += seconds;
}

// What the costly drafter has drawn is verified, whatever it is.
bool Speculator::must_verify(std::size_t i) const {
    const Proposal& costly = proposals_.back()[i];
    return costly.another != nullptr && costly.draft.size() > rounds_[i].n_prefix &&
           is_drawn(costly.draft);
}

// Of a drawn draft only the first token's evidence may be looked at: what comes later depends on
// what was drawn.
EvidenceSpan Speculator::evidence(const Draft& draft) const {
    const EvidenceSpan all(draft.evidence);
    return is_drawn(draft) ? all.first(1) : all;
}

void Speculator::choose(std::size_t i) {
    Round& round = rounds_[i];
    if (!speculates()) return;
    if (!chooses()) {
        std::swap(round.verified, proposals_.back()[i].draft);
        return;
    }
    if (must_verify(i)) {
        round.verified = proposals_.back()[i].draft;
        return;
    }
    evidence_.clear();
    for (const std::vector<Proposal>& proposals : proposals_)
        evidence_.push_back(evidence(proposals[i].draft));
    const Phase& phase = phases_.at(proposals_[0][i].sequence);
    round.choice = plans() ? planner_.choose(round.situation, phase, evidence_)
                           : planner_.likeliest(round.situation, phase, evidence_);
    verify_first(i, round.choice.n_draft);
}

// Takes over the first n tokens of the draft that was chosen; all, if they were drawn.
void Speculator::verify_first(std::size_t i, int n) {
    Round& round = rounds_[i];
    round.verified.clear();
    if (round.choice.draft < 0 || n == 0) return;
    const Draft& chosen = proposals_[round.choice.draft][i].draft;
    if (is_drawn(chosen)) n = chosen.size();
    for (int t = 0; t < n; ++t)
        round.verified.push(chosen.tokens[t], chosen.evidence[t], chosen.drawn_from[t]);
}

// A sequence's part in a decode that several share: of the drafts at hand, the one that promises
// most.
void Speculator::offer(std::size_t i) {
    Round& round = rounds_[i];
    Share& share = shares_[i];
    const Phase& phase = phases_.at(proposals_[0][i].sequence);
    share.n_pending = round.situation.n_pending;
    share.place = proposals_[0][i].sequence;
    share.all = must_verify(i);
    share.tokens.assign(1, 1);
    round.choice = {};
    for (std::size_t d = share.all ? proposals_.size() - 1 : 0; d < proposals_.size(); ++d) {
        const Draft& draft = proposals_[d][i].draft;
        planner_.expect(round.situation, phase, evidence(draft), tokens_);
        if (is_drawn(draft)) tokens_.resize(draft.size() + 1, tokens_.back());
        if (tokens_.back() <= share.tokens.back()) continue;
        round.choice.draft = static_cast<int>(d);
        std::swap(share.tokens, tokens_);
    }
}

void Speculator::share(std::span<Sequence* const> sequences) {
    const std::size_t n = sequences.size();
    shares_.resize(n);
    int n_context = 0;
    double spent = 0;
    for (std::size_t i = 0; i < n; ++i) {
        offer(i);
        n_context += rounds_[i].situation.n_tokens / static_cast<int>(n);
        spent = std::max(spent, rounds_[i].situation.spent);
    }
    const auto seconds = [&](int n_rows) { return planner_.cost().seconds(n_rows, n_context); };
    batch_share_.settle(shares_, spent, alike_, seconds);
    int n_rows = 0;
    for (std::size_t i = 0; i < n; ++i) {
        verify_first(i, batch_share_.lengths()[i]);
        n_rows += shares_[i].n_pending + rounds_[i].verified.size();
    }
    for (std::size_t i = 0; i < n; ++i) {
        Choice& choice = rounds_[i].choice;
        choice.n_draft = batch_share_.lengths()[i];
        choice.tokens = shares_[i].tokens[choice.n_draft];
        choice.seconds = seconds(n_rows);
    }
}

void Speculator::observe_decode(int n, int n_context, double seconds) {
    if (plans()) planner_.observe_decode(n, n_context, seconds);
}

void Speculator::observe(std::size_t i, Sequence& sequence, int n_accepted, Token next,
                         double seconds) {
    const Round& round = rounds_[i];
    for (int t = 0; t < round.verified.size(); ++t) {
        auto& count = sequence.stats.by_source[static_cast<int>(round.verified.evidence[t].source)];
        ++count.drafted;
        count.accepted += t < n_accepted;
    }
    if (sequence.traces()) trace(round, sequence, n_accepted, next, seconds);
    if (chooses()) {
        const Timer timer(sequence.stats.seconds.draft);
        Phase& phase = phases_.at(sequence.id());
        for (const std::vector<Proposal>& proposals : proposals_)
            judge(round, phase, proposals[i], n_accepted, next);
        planner_.settle(phase, round.situation, round.verified.size(), n_accepted);
    }
    if (round.verified.empty() || next < 0 || sequence.done()) return;
    for (const auto& drafter : drafters_)
        contained(sequence,
                  [&] { drafter->observe(sequence.id(), round.verified, n_accepted, next); });
}

void Speculator::trace(const Round& round, Sequence& sequence, int n_accepted, Token next,
                       double seconds) {
    RoundTrace& trace = sequence.trace.emplace_back();
    trace.position = round.situation.n_tokens - sequence.stats.prompt_tokens;
    for (int t = 0; t < round.verified.size(); ++t) {
        const Evidence& evidence = round.verified.evidence[t];
        trace.draft.push_back({round.verified.tokens[t], static_cast<int>(evidence.source),
                               evidence.length, evidence.confidence});
    }
    trace.accepted = n_accepted;
    trace.next = std::max(next, kNoToken);
    trace.draft_seconds = round.situation.spent;
    trace.decode_seconds = seconds;
    if (!plans()) return;
    trace.expected_tokens = round.choice.tokens;
    trace.expected_seconds = round.situation.spent + round.choice.seconds;
}

// Tells the planner how a drafter did, also where another one's draft was verified: the tokens that
// came judge every draft.
void Speculator::judge(const Round& round, Phase& phase, const Proposal& proposal, int n_accepted,
                       Token next) {
    const Draft& draft = proposal.draft;
    int n_judged = n_accepted + (next >= 0 ? 1 : 0);
    int n_right = 0;
    while (n_right < std::min(draft.size(), n_judged) &&
           draft.tokens[n_right] == (n_right < n_accepted ? round.verified.tokens[n_right] : next))
        ++n_right;
    // What it went on from was another's.
    const int skip = proposal.another == nullptr ? 0 : round.n_prefix;
    if (draft.size() <= skip || n_right < skip || n_judged <= skip) return;
    planner_.observe(phase, round.situation.n_tokens + skip,
                     EvidenceSpan(draft.evidence).subspan(skip), n_right - skip, n_judged - skip);
}

}  // namespace specllama
