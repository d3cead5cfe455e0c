#include "engine/speculator/speculator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/proposal_check.h"
#include "engine/round_record.h"
#include "specllama/error.h"

namespace specllama {

Speculator::Speculator(Drafters drafters, int longest, const Tree::Limits& limits,
                       const Vocabulary& vocab)
    : proposals_(drafters.size() + 2),
      drafters_(std::move(drafters)),
      longest_(longest),
      limits_(limits),
      vocab_(&vocab),
      grammar_(std::make_unique<GrammarDrafter>(vocab)) {}

void Speculator::begin(Sequence& sequence, TokenSpan reference) {
    const TokenSpan text = sequence.text_tokens();
    grammar_->begin(sequence.id(), text, reference);
    for (const auto& drafter : drafters_)
        contained(sequence, [&] { drafter->begin(sequence.id(), text, reference); });
}

void Speculator::end(Sequence& sequence) {
    grammar_->end(sequence.id());
    for (const auto& drafter : drafters_) contained(sequence, [&] { drafter->end(sequence.id()); });
}

void Speculator::propose(std::span<Sequence* const> sequences, std::span<const DraftLimits> limits,
                         double overhead) {
    const std::size_t n = sequences.size();
    requests_.resize(n);
    verified_.resize(n);
    bool wanted = false;
    for (std::size_t i = 0; i < n; ++i) {
        Sequence& sequence = *sequences[i];
        RoundRequest& request = requests_[i];
        request.regime = &sequence.regime;
        request.n_tokens = sequence.n_tokens();
        request.n_pending = sequence.n_pending();
        request.max_draft = sequence.given() != nullptr ? 0 : limits[i].depth;
        request.max_rows = limits[i].nodes;
        request.n_left = sequence.n_tokens_left();
        request.overhead = overhead;
        request.spent = 0;
        request.stream = sequence.id();
        request.candidates.clear();
        verified_[i].clear();
        wanted |= request.max_draft > 0;
    }
    begin_round(sequences);
    for (std::size_t row = 0; row < proposals_.size(); ++row) prepare(row, sequences);
    if (wanted) ask_all(sequences);
    for (std::size_t i = 0; i < n; ++i)
        if (sequences[i]->given() != nullptr) take_given(i, *sequences[i], limits[i]);
}

// The client has planned it, and knows the cost of a round there.
void Speculator::take_given(std::size_t i, const Sequence& sequence, DraftLimits most) {
    if (sequence.in_prompt()) return;  // this round verifies nothing
    draft_ = *sequence.given();
    if (!sequence.replays()) cut_after_end(draft_, *vocab_);
    given_.clear();
    given_.add(draft_,
               {.nodes = most.nodes, .leaves = limits_.leaves, .siblings = limits_.siblings});
    kept_.clear();
    for (const Tree::Node& node : given_.nodes()) kept_.push_back(node.depth < most.depth);
    verified_[i].take(given_, kept_);
}

CoreDrafter& Speculator::drafter(std::size_t row) {
    return row == forced() ? *grammar_ : *drafters_[row == after_forced() ? 0 : row];
}

// Resets the proposals of a row for a round.
void Speculator::prepare(std::size_t row, std::span<Sequence* const> sequences) {
    proposals_[row].resize(sequences.size());
    if (!speculates()) return;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        Sequence& sequence = *sequences[i];
        DraftRequest& proposal = proposals_[row][i];
        proposal.sampler = &sequence.sampler();
        proposal.sequence = sequence.id();
        proposal.tokens = sequence.text_tokens();
        proposal.n_media = sequence.n_tokens() - static_cast<int>(proposal.tokens.size());
        proposal.memory_owner = sequence.memory_owner();
        proposal.draft.clear();
        proposal.n_decoded = 0;
        proposal.error.clear();
        proposal.max_tokens = requests_[i].max_draft;
        proposal.keep_drafting = nullptr;
        proposal.candidates = {};
        const CoreDrafter& from = drafter(row);
        if (row != forced() && !sequence.drafts_by(from.has_step_cost())) proposal.max_tokens = 0;
        limit(proposal, from);
    }
}

void Speculator::limit(DraftRequest& proposal, const CoreDrafter& /*from*/) const {
    proposal.max_drawn = proposal.max_tokens;
    proposal.max_alternatives = limits_.siblings - 1;
}

void Speculator::ask_after_forced(std::size_t row, std::span<Sequence* const> sequences) {
    bool asked = row != after_forced();
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        const SampledDraft& forced_draft = proposals_[forced()][i].draft;
        DraftRequest& proposal = proposals_[row][i];
        if (proposal.max_tokens == 0) continue;
        if (forced_draft.empty()) {
            if (row == after_forced()) proposal.max_tokens = proposal.max_drawn = 0;
            continue;
        }
        asked = true;
        proposal.draft = forced_draft;
        // Only the token directly after the text is drawn from frequencies, not one after forced
        // tokens.
        if (!drafter(row).has_step_cost()) proposal.max_drawn = 0;
    }
    if (!asked) return;
    ask(row, sequences);
    for (std::size_t i = 0; i < sequences.size(); ++i)
        if (SampledDraft& draft = proposals_[row][i].draft;
            draft.size() == proposals_[forced()][i].draft.size())
            draft.clear();
}

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
        DraftRequest& proposal = proposals_[row][i];
        sequence.stats.seconds.draft += seconds;
        sequence.stats.draft_decoded_tokens += proposal.n_decoded;
        requests_[i].spent += seconds;
        const std::string wrong = error.empty() ? fault(proposal, *vocab_) : error;
        if (!wrong.empty()) {
            record_error(sequence, wrong);
            proposal.draft.clear();
        }
        if (!sequence.replays()) cut_after_end(proposal.draft, *vocab_);
        contained(sequence, [&] { cut_where_forbidden(proposal.draft, sequence.sampler()); });
    }
    return seconds;
}

std::span<const SampledDraft* const> Speculator::drafts(std::size_t i) {
    drafts_.clear();
    for (const std::vector<DraftRequest>& of_row : proposals_) drafts_.push_back(&of_row[i].draft);
    return drafts_;
}

void Speculator::keep(std::size_t i, const Tree& tree, std::span<const int> rows) {
    kept_.assign(tree.size(), false);
    for (const int row : rows) kept_[row] = true;
    verified_[i].take(tree, kept_);
}

void Speculator::keep_all(std::size_t i, const Tree& tree) {
    kept_.assign(tree.size(), true);
    verified_[i].take(tree, kept_);
}

void Speculator::observe(std::size_t i, const Verification& result) {
    Sequence& sequence = *result.sequence;
    const bool given = sequence.given() != nullptr;
    record_round(requests_[i], given ? nullptr : expected(i), result);
    if (!given) {
        const Timer timer(sequence.stats.seconds.draft);
        learn(i, result);
    }
    if (!result.draft->empty() && result.tokens.size() > result.path.size() && !sequence.done())
        notify(result);
}

// The drafters are notified of the main path only.
void Speculator::notify(const Verification& result) {
    Sequence& sequence = *result.sequence;
    draft_.clear();
    for (const Tree::Node& node : result.draft->nodes().first(result.draft->n_main_path()))
        draft_.push(node.token, node.evidence, node.drawn_from);
    const int n_accepted = n_on_main_path(result.path);
    for (const auto& drafter : drafters_)
        contained(sequence, [&] {
            drafter->observe(sequence.id(), draft_, n_accepted, result.tokens[n_accepted]);
        });
}

// A bias can forbid the token that the grammar allows, and log-probabilities need logits.
Token Speculator::forced_token(Sequence& sequence) {
    const SamplingOptions& options = sequence.sampler().options();
    if (options.grammar.empty() || !options.logit_bias.empty() || options.logprobs >= 0)
        return kNoToken;
    Token token = kNoToken;
    contained(sequence, [&] {
        token = grammar_->forced(sequence.id(), sequence.text_tokens(), sequence.sampler());
    });
    return token;
}

}  // namespace specllama
