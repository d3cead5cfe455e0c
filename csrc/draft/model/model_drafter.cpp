#include "draft/model/model_drafter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "specllama/error.h"

namespace specllama {

ModelDrafter::ModelDrafter(std::shared_ptr<const Model> model, const DraftPlan& plan, int longest)
    : sampler_(plan, model->vocab().size()),
      context_(std::move(model), {plan.context}, longest),
      batch_(context_.n_batch()) {
    if (context_.memory().n_cuttable() != Memory::kAnyNumber)
        throw ModelError("The draft model " + plan.model.path +
                         " cannot draft: its memory (recurrent or hybrid) cannot be cut back.");
}

// Number of leading tokens of a prompt that the memory holds.
int ModelDrafter::n_common(const Follower& follower, TokenSpan prompt) {
    const TokenSpan held = TokenSpan(follower.tokens).first(follower.n_cached);
    return static_cast<int>(std::ranges::mismatch(held, prompt).in1 - held.begin());
}

void ModelDrafter::begin(SequenceId sequence, TokenSpan prompt, TokenSpan) {
    Follower& follower = followers_[sequence];
    follower.n_followed = 0;
    follower.n_cached = n_common(follower, prompt);
    follower.tokens.reserve(std::max<std::size_t>(context_.n_ctx(), prompt.size()) +
                            kMaxSpecLength);
    sampler_.begin(sequence);
    reuse(sequence, prompt);
}

// Copies the beginning of a prompt from another sequence's memory, if that has over kShortestCopy
// more tokens of it than this sequence's.
void ModelDrafter::reuse(SequenceId sequence, TokenSpan prompt) {
    Follower& own = followers_.at(sequence);
    int n_most = own.n_cached + Memory::kShortestCopy;
    SequenceId from = sequence;
    for (const auto& [other, follower] : followers_) {
        const int n = context_.memory().copyable_prefix(other, n_common(follower, prompt));
        if (n <= n_most) continue;
        n_most = n;
        from = other;
    }
    if (from == sequence) return;
    own.n_cached = context_.memory().copy_prefix(from, sequence, n_most);
    own.tokens.assign(prompt.begin(), prompt.begin() + own.n_cached);
}

int ModelDrafter::n_unprocessed(SequenceId sequence, int n_tokens) const {
    return std::max(n_tokens - 1 - followers_.at(sequence).n_cached, 0);
}

void ModelDrafter::propose(std::span<DraftRequest> proposals) {
    drafting_.clear();
    for (DraftRequest& proposal : proposals) {
        if (!proposal.wants_more()) continue;
        Follower& follower = followers_.at(proposal.sequence);
        follow(proposal, follower);
        drafting_.push_back({&proposal, &follower, 0});
    }
    if (drafting_.empty()) return;
    context_.adapt_threads();
    const int quota = context_.n_batch() / static_cast<int>(drafting_.size());
    try {
        prefill(quota);
        add_candidates(quota);
        draft();
    } catch (const Error& error) {
        for (const Drafting& one : drafting_) one.proposal->error = error.what();
    }
}

// Drafts token by token, one decode for all sequences that want another token.
void ModelDrafter::draft() {
    while (!drafting_.empty()) {
        for (Drafting& one : drafting_) one.n_now = one.follower->n_pending();
        decode();
        std::erase_if(drafting_, [&](Drafting& one) { return !extend(one); });
    }
}

// Adds candidates after the tokens, within the quota. Room for one more token of the draft is kept
// after the last candidate, so no draft needs more rows of logits than its maximum of tokens.
void ModelDrafter::add_candidates(int quota) {
    for (Drafting& one : drafting_) {
        const TokenSpan all = one.proposal->candidates;
        const int room = std::min(quota - one.follower->n_pending(),
                                  one.proposal->max_tokens - one.proposal->draft.size() - 1);
        const TokenSpan candidates =
            all.first(std::min(all.size(), static_cast<std::size_t>(room)));
        one.follower->tokens.insert(one.follower->tokens.end(), candidates.begin(),
                                    candidates.end());
        one.n_candidates = static_cast<int>(candidates.size());
    }
}

// Adds the next token to a draft, and further tokens while they equal the candidates. Other
// candidates are removed from the memory. Returns whether another token should follow.
bool ModelDrafter::extend(Drafting& drafting) {
    DraftRequest& proposal = *drafting.proposal;
    Follower& follower = *drafting.follower;
    std::vector<Token>& tokens = follower.tokens;
    const int n_candidates = std::exchange(drafting.n_candidates, 0);
    tokens.resize(tokens.size() - n_candidates);
    int n_right = 0;
    bool more = true;
    for (int row = follower.row; more && n_right == row - follower.row; ++row) {
        more = sampler_.extend(proposal, context_.logits(row), tokens);
        if (!more || n_right == n_candidates) break;
        n_right += tokens.back() == proposal.candidates[n_right];
        more = proposal.draft.size() < proposal.max_tokens;
    }
    if (n_right < n_candidates)
        follower.n_cached =
            context_.memory().rewind(proposal.sequence, follower.n_cached - n_candidates + n_right);
    return more && proposal.wants_more();
}

// Processes tokens of sequences that lack more than their quota of a batch; the last token is left
// to draft(). For a single sequence, decodes batches until it lacks no more than its quota. For
// several, decodes one batch; those that still lack more do not draft in this round.
void ModelDrafter::prefill(int quota) {
    const auto lags = [&](const Drafting& one) { return one.follower->n_pending() > quota; };
    do {
        int room = context_.n_batch();
        for (Drafting& one : drafting_) {
            one.n_now = lags(one) ? std::min(room, one.follower->n_pending() - 1) : 0;
            room -= one.n_now;
        }
        if (room == context_.n_batch()) return;
        decode();
    } while (drafting_.size() == 1);
    std::erase_if(drafting_, lags);
}

// Decodes the next n_now tokens of each sequence, after those in its memory.
void ModelDrafter::decode() {
    batch_.clear();
    for (const auto& [proposal, follower, n_now, n_candidates] : drafting_) {
        const int last = static_cast<int>(follower->tokens.size()) - n_candidates - 1;
        for (int position = follower->n_cached; position < follower->n_cached + n_now; ++position) {
            const int row = batch_.add(follower->tokens[position], position, proposal->sequence,
                                       position >= last);
            if (position <= last) follower->row = row;
        }
    }
    try {
        context_.decode(batch_);
    } catch (...) {
        for (const Drafting& one : drafting_)
            one.follower->n_cached =
                context_.memory().rewind(one.proposal->sequence, one.follower->n_cached);
        throw;
    }
    for (const auto& [proposal, follower, n_now, n_candidates] : drafting_) {
        follower->n_cached += n_now;
        proposal->n_decoded += n_now;
    }
}

// Sets the follower's tokens to those of the proposal: the sequence's, then the draft's. The memory
// is cut back to their common beginning, without the last token, whose logits are needed. Only
// tokens after n_followed are compared, since a sequence only grows within a request.
void ModelDrafter::follow(const DraftRequest& proposal, Follower& follower) {
    std::vector<Token>& tokens = follower.tokens;
    int n_same = follower.n_followed;
    const auto go_along = [&](TokenSpan others) {
        const TokenSpan own = TokenSpan(tokens).subspan(n_same);
        const auto n = std::ranges::mismatch(own, others).in2 - others.begin();
        n_same += static_cast<int>(n);
        return others.subspan(n);
    };
    const TokenSpan new_tokens = go_along(proposal.tokens.subspan(n_same));
    const TokenSpan drafted(proposal.draft.tokens);
    const TokenSpan new_drafted = new_tokens.empty() ? go_along(drafted) : drafted;
    tokens.resize(n_same);
    tokens.insert(tokens.end(), new_tokens.begin(), new_tokens.end());
    tokens.insert(tokens.end(), new_drafted.begin(), new_drafted.end());
    follower.n_followed = static_cast<int>(proposal.tokens.size());
    follower.n_cached = context_.memory().rewind(
        proposal.sequence,
        std::min({n_same, follower.n_cached, static_cast<int>(tokens.size()) - 1}));
}

}  // namespace specllama
