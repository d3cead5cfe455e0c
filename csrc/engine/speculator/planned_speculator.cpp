#include "engine/speculator/planned_speculator.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "draft/sampled_draft.h"
#include "engine/proposal_check.h"

namespace specllama {

namespace {

// Tokens of a drawn draft for which the planner decides whether it is verified, from the cost of
// its tokens and the chance of the first one. The length of a longer draft would depend on the
// drawn tokens (on whether the text continues that way), and thus the decision, too.
constexpr int kDrawn = 1;

// Most nodes of a tree that the planner chooses from. More than can be verified, because the
// longest draft alone can have that many.
constexpr int kMostOffered = 4 * kMaxSpecLength;

constexpr Tree::Limits kChains;

bool draws(const DraftRequest& proposal) {
    return proposal.sampler->options().acceptance == AcceptanceRule::rejection;
}

}  // namespace

PlannedSpeculator::PlannedSpeculator(Drafters drafters, int longest, const Tree::Limits& limits,
                                     const Vocabulary& vocab, Planner planner,
                                     bool checks_candidates)
    : Speculator(std::move(drafters), longest, limits, vocab),
      planner_(std::move(planner)),
      checks_candidates_(checks_candidates) {
    planner_.draft_cost().set_tokens_per_step(this->drafters().back()->tokens_per_step());
}

void PlannedSpeculator::begin(Sequence& sequence, TokenSpan reference) {
    const double temperature = sequence.sampler().options().temperature;
    sequence.regime = planner_.begin(temperature, sequence.n_tokens());
    Speculator::begin(sequence, reference);
}

void PlannedSpeculator::end(Sequence& sequence) {
    Speculator::end(sequence);
    sequence.stats.decode_seconds = planner_.cost().points().seconds;
    sequence.stats.draft_step_seconds = planner_.draft_cost().step(1, 0);
    sequence.stats.draft_break_even = planner_.break_even(sequence.n_tokens());
}

// The padding is planned for this number of rows. Drafts of clients are not planned.
int PlannedSpeculator::n_padding() const {
    if (plans_.empty()) return 0;
    const Choice& choice = plans_.front().choice;
    int n_rows = 0;
    for (std::size_t i = 0; i < plans_.size(); ++i)
        n_rows += requests_[i].n_pending + verified_[i].size();
    return n_rows == choice.n_committed + choice.n_drafted ? choice.n_padding : 0;
}

void PlannedSpeculator::observe_decode(const Decode& decode) {
    planner_.set_threads(decode.n_threads);
    planner_.cost().observe(decode.n_rows, decode.n_context, decode.seconds);
}

void PlannedSpeculator::begin_round(std::span<Sequence* const> sequences) {
    plans_.resize(sequences.size());
    work_.resize(sequences.size());
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        Sequence& sequence = *sequences[i];
        RoundRequest& request = requests_[i];
        request.n_unprocessed = 0;
        contained(sequence, [&] {
            request.n_unprocessed =
                drafters().back()->n_unprocessed(sequence.id(), request.n_tokens);
        });
        plans_[i].choice = {};
        plans_[i].n_to_check = 0;
        plans_[i].without_draft_model.reset();
        work_[i].replays = sequence.replays();
        work_[i].n_prefix = work_[i].n_rest = 0;
        work_[i].n_shared.assign(proposals_.size(), 0);
    }
}

// Drawn drafts are verified whole, so they stay chains. (A draft model may draw even if the target,
// at temperature 0, does not.)
void PlannedSpeculator::limit(DraftRequest& proposal, const CoreDrafter& from) const {
    Speculator::limit(proposal, from);
    if (!from.has_step_cost()) proposal.max_drawn = std::min(proposal.max_tokens, kDrawn);
    if (draws(proposal)) proposal.max_alternatives = 0;
}

void PlannedSpeculator::ask_all(std::span<Sequence* const> sequences) {
    ask(forced(), sequences);
    for (std::size_t d = 0; d < drafters().size(); ++d) {
        if (drafters()[d]->has_step_cost()) {
            choose(sequences, kChains);
            // If it drafts nothing, the choice is final, unless a tree has alternatives to it.
            if (!ask_sequential(sequences) && tree_limits().siblings == 1) return;
        } else {
            ask(d, sequences);
            if (d == 0)
                ask_after_forced(after_forced(), sequences);
            else
                share_with_earlier(d);
        }
    }
    choose(sequences, tree_limits());
}

// Other texts are often right where the request itself has an equally good match. Counting these
// cases would overestimate how often they are right where only they have a match.
void PlannedSpeculator::share_with_earlier(std::size_t row) {
    for (std::size_t i = 0; i < work_.size(); ++i) {
        SampledDraft& draft = proposals_[row][i].draft;
        int& n_shared = work_[i].n_shared[row];
        for (std::size_t earlier = 0; earlier < row && n_shared == 0; ++earlier)
            n_shared = share_evidence(draft, proposals_[earlier][i].draft);
        if (n_shared == draft.size()) draft.clear();
    }
}

// Gives the sequential drafter the chosen part of the other drafts: tokens that a grammar forces
// are certain, and the rest are candidates.
void PlannedSpeculator::give_chosen(std::size_t i) {
    Work& work = work_[i];
    DraftRequest& proposal = proposals_[drafters().size() - 1][i];
    const Tree& chosen = verified_[i];
    work.candidates.clear();
    if (!checks_candidates_ || proposal.max_tokens == 0) return;
    int& n = work.n_prefix;
    for (; n < chosen.size() && chosen[n].evidence.source == Source::grammar; ++n)
        proposal.draft.push(chosen[n].token, chosen[n].evidence);
    // Drawn tokens must not depend on candidates.
    if (draws(proposal)) return;
    const int n_checked = planner_.n_to_check(requests_[i], plans_[i].choice);
    for (int t = n; t < n_checked; ++t) work.candidates.push_back(chosen[t].token);
    proposal.candidates = work.candidates;
    plans_[i].n_to_check = static_cast<int>(work.candidates.size());
}

// Returns whether the sequential drafter has drafted anything.
bool PlannedSpeculator::ask_sequential(std::span<Sequence* const> sequences) {
    const std::size_t last = drafters().size() - 1;
    std::vector<DraftRequest>& proposals = proposals_[last];
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        Work& work = work_[i];
        give_chosen(i);
        work.keep_drafting = [this, i](const SampledDraft& draft) {
            return keep_drafting(i, draft);
        };
        proposals[i].keep_drafting = &work.keep_drafting;
    }
    const double seconds = ask(last, sequences);
    int n_steps = 0;
    int n_drafted = 0;  // tokens or blocks that took a step
    int n_decoded = 0;
    int n_drafting = 0;  // sequences with the drafter's own tokens
    std::int64_t n_context = 0;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        SampledDraft& draft = proposals[i].draft;
        const TokenSpan all(draft.tokens);  // empty after an error
        const TokenSpan own = all.subspan(std::min<std::size_t>(work_[i].n_prefix, all.size()));
        const auto n = static_cast<int>(own.size());
        const auto n_agreed = std::ranges::mismatch(own, work_[i].candidates).in1 - own.begin();
        if (n > 0 || proposals[i].n_decoded > 0) plans_[i].without_draft_model = plans_[i].choice;
        n_decoded += proposals[i].n_decoded;
        if (n == 0) continue;
        const int n_here =
            std::max(planner_.draft_cost().n_steps(n - static_cast<int>(n_agreed), 0), 1);
        n_steps = std::max(n_steps, n_here);
        n_drafted += n_here;
        ++n_drafting;
        n_context += requests_[i].n_tokens;
        for (std::size_t row = 0; row < proposals_.size() && work_[i].n_rest == 0; ++row)
            work_[i].n_rest = add_rest(draft, proposals_[row][i].draft, requests_[i].max_draft);
    }
    if (n_steps > 0)
        planner_.draft_cost().observe(n_steps, n_drafted, std::max(n_decoded - n_drafted, 0),
                                      static_cast<int>(n_context / n_drafting), seconds);
    return n_steps > 0;
}

bool PlannedSpeculator::keep_drafting(std::size_t i, const SampledDraft& draft) {
    if (!work_[i].replays && !draft.empty() && draft.drawn_from.back() == nullptr &&
        vocab().is_end(draft.tokens.back()))
        return false;
    // The rest of a block already exists.
    if (drafts_blocks() && !draft.empty() && !draft.drawn()) return true;
    return planner_.should_continue(requests_[i], plans_[i], draft.evidence, asked_.seconds());
}

// Chooses which part of the current drafts is verified.
void PlannedSpeculator::choose(std::span<Sequence* const> sequences, const Tree::Limits& limits) {
    const Stopwatch watch;
    for (std::size_t i = 0; i < sequences.size(); ++i) list_candidates(i, limits);
    planner_.choose(requests_, plans_);
    for (std::size_t i = 0; i < sequences.size(); ++i) keep_chosen(i, limits);
    const double seconds = watch.seconds();
    for (Sequence* sequence : sequences) sequence->stats.seconds.draft += seconds;
}

void PlannedSpeculator::list_candidates(std::size_t i, Tree::Limits limits) {
    RoundRequest& request = requests_[i];
    Work& work = work_[i];
    request.candidates.clear();
    const bool trees = limits.siblings > 1;
    if (trees) work.joined.resize(proposals_.size());
    for (std::size_t row = 0; row < proposals_.size(); ++row) {
        const DraftRequest& proposal = proposals_[row][i];
        const bool sequential = proposal.keep_drafting != nullptr;
        const int n_known = row == after_forced() ? proposals_[forced()][i].draft.size()
                            : sequential          ? work.n_prefix
                                                  : work.n_shared[row];
        const bool drawn = proposal.draft.drawn();
        // What the sequential drafter has drawn must be verified in any case. Its own choices are
        // better informed than a copy: it knows where both agree and where they differ. A block is
        // made without the copy, so it competes.
        const bool required =
            sequential && proposal.draft.size() > n_known && (drawn || !drafts_blocks());
        const int n_rest = sequential ? work.n_rest : 0;
        request.candidates.push_back(
            {proposal.draft.evidence, {}, n_known, n_rest, drawn, required});
        if (!trees) continue;
        JoinedDraft& joined = work.joined[row];
        limits.nodes = drawn ? request.max_rows : kMostOffered;
        joined.join(drafts(i), row, limits);
        request.candidates.back().alternatives = joined.alternatives;
    }
}

// Makes the chosen part the draft to verify.
void PlannedSpeculator::keep_chosen(std::size_t i, const Tree::Limits& limits) {
    const Choice& choice = plans_[i].choice;
    verified_[i].clear();
    if (choice.candidate < 0) return;
    if (limits.siblings == 1) {
        verified_[i].add(proposals_[choice.candidate][i].draft, {.nodes = choice.n_draft});
        return;
    }
    const Tree& tree = work_[i].joined[choice.candidate].tree;
    if (requests_[i].candidates[choice.candidate].drawn)
        keep_all(i, tree);
    else
        keep(i, tree, plans_[i].rows);
}

// Learns how much of every draft was right, verified or not: the target's tokens judge all of them.
void PlannedSpeculator::learn(std::size_t i, const Verification& result) {
    RoundRequest& request = requests_[i];
    outcome_.n_accepted = static_cast<int>(result.path.size());
    outcome_.n_judged = static_cast<int>(result.tokens.size());
    outcome_.n_repeated = outcome_.n_accepted - n_on_main_path(result.path);
    outcome_.n_right.clear();
    for (std::size_t row = 0; row < request.candidates.size(); ++row) {
        const TokenSpan tokens = proposals_[row][i].draft.tokens;
        const auto n_right = std::ranges::mismatch(tokens, result.tokens).in1 - tokens.begin();
        outcome_.n_right.push_back(static_cast<int>(n_right));
        if (!request.candidates[row].alternatives.empty())
            work_[i].joined[row].judge(result.tokens);
    }
    planner_.learn(request, plans_[i], outcome_);
}

}  // namespace specllama
