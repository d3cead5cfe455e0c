#include "draft/block/block_drafter.h"

#include <algorithm>
#include <cstddef>

#include "specllama/error.h"

namespace specllama {

BlockDrafter::BlockDrafter(const std::shared_ptr<const Model>& target, const DraftPlan& plan,
                           const Header& model, int longest, const ProgressFunction& progress)
    : sampler_(plan, target->vocab().size()),
      context_options_(plan.context),
      format_(check_block_drafter(plan.model.path, target->header())),
      n_draft_(std::min(longest, format_.n_draft())),
      model_(Model::load(plan.model, Kernels::fastest, model, progress)) {
    check_vocabulary(*model_, *target, "The block drafter");
}

void BlockDrafter::attach(Context& target) {
    target_ = &target;
    context_.emplace(model_, format_, n_draft_, context_options_, target);
    target.keep_states(format_.layers);
}

void BlockDrafter::begin(SequenceId sequence, TokenSpan prompt, TokenSpan) {
    Follower& follower = followers_[sequence];
    follower.waiting.resize(static_cast<std::size_t>(context_->n_batch()) * target_->n_features());
    follower.tokens.reserve(target_->n_ctx() + kMaxSpecLength);
    follower.held.reserve(target_->n_ctx());
    sampler_.begin(sequence);
    reuse(sequence, prompt);
    keep(sequence, follower, follower.n_common(prompt));
}

// Copies the beginning of a prompt from another sequence's memory, if that is faster.
void BlockDrafter::reuse(SequenceId sequence, TokenSpan prompt) {
    Follower& own = followers_.at(sequence);
    const auto [from_id, from, n] = longest_prefix(followers_, own, prompt);
    if (from == nullptr) return;
    own.tokens.assign(prompt.begin(), prompt.begin() + n);
    own.n_seen = n;
    own.n_waiting = std::max(n - from->first(), 0);
    std::copy_n(from->waiting.begin(),
                static_cast<std::size_t>(own.n_waiting) * target_->n_features(),
                own.waiting.begin());
    own.held.assign(from->held.begin(), std::ranges::lower_bound(from->held, n));
    context_->copy(from_id, sequence, own.n_held());
}

// Forgets all states of tokens after the first n.
void BlockDrafter::keep(SequenceId sequence, Follower& follower, int n) {
    if (n >= follower.n_seen) return;
    follower.n_waiting = std::max(n - follower.first(), 0);
    follower.n_seen = n;
    while (!follower.held.empty() && follower.held.back() >= n) follower.held.pop_back();
    context_->cut(sequence, follower.n_held());
}

void BlockDrafter::process(SequenceId sequence, TokenSpan tokens, Position first,
                           std::span<const int> rows) {
    Follower& follower = followers_.at(sequence);
    if (first > follower.n_seen) ingest(sequence, follower);
    follower.add(tokens, first, rows, [&](int row) {
        if (follower.n_waiting == context_->n_batch()) ingest(sequence, follower);
        target_->copy_states(
            row, follower.waiting.data() +
                     static_cast<std::size_t>(follower.n_waiting) * target_->n_features());
        ++follower.n_waiting;
    });
}

// The states of the last n_draft_ + 1 tokens are part of every draft's cost.
int BlockDrafter::n_unprocessed(SequenceId sequence, int /*n_tokens*/) const {
    return std::max(followers_.at(sequence).n_waiting - n_draft_ - 1, 0);
}

void BlockDrafter::add_waiting(SequenceId sequence, const Follower& follower) {
    for (int i = 0; i < follower.n_waiting; ++i)
        context_->add_states(
            follower.waiting.data() + static_cast<std::size_t>(i) * target_->n_features(),
            follower.n_held() + i, sequence);
}

// Records that all waiting states are in the memory.
void BlockDrafter::taken_in(Follower& follower) {
    for (Position position = follower.first(); position < follower.n_seen; ++position)
        follower.held.push_back(position);
    follower.n_waiting = 0;
}

// Ingests the waiting states of one sequence. If that fails, they are lost.
void BlockDrafter::ingest(SequenceId sequence, Follower& follower) {
    context_->clear();
    add_waiting(sequence, follower);
    try {
        context_->inject();
    } catch (...) {
        context_->cut(sequence, follower.n_held());
        follower.n_waiting = 0;
        throw;
    }
    taken_in(follower);
}

void BlockDrafter::propose(std::span<DraftRequest> proposals) {
    drafting_.clear();
    context_->adapt_threads();
    try {
        start(proposals);
        if (!drafting_.empty()) draft();
    } catch (const Error& error) {
        for (const Drafting& one : drafting_) {
            one.proposal->error = error.what();
            context_->cut(one.proposal->sequence, one.follower->n_held());
        }
    }
}

// Selects the sequences that draft, and ingests their waiting states.
void BlockDrafter::start(std::span<DraftRequest> proposals) {
    for (DraftRequest& proposal : proposals) {
        Follower& follower = followers_.at(proposal.sequence);
        if (follower.begin_draft(proposal)) drafting_.push_back({&proposal, &follower, 0});
    }
    for (const Drafting& one : drafting_) {
        // Only the states beyond those of one draft count as unprocessed.
        one.proposal->n_decoded = 1 + n_unprocessed(one.proposal->sequence, 0);
        if (one.follower->n_waiting > 0) ingest(one.proposal->sequence, *one.follower);
    }
}

void BlockDrafter::draft() {
    context_->clear();
    for (Drafting& one : drafting_)
        one.row = context_->add_block(one.follower->tokens.back(), one.follower->n_held(),
                                      one.proposal->sequence);
    context_->decode();
    for (const Drafting& one : drafting_) {
        DraftRequest& proposal = *one.proposal;
        std::vector<Token>& tokens = one.follower->tokens;
        for (int i = 0; i < n_draft_; ++i) {
            const bool extended =
                sampler_.extend(proposal, context_->logits(one.row, i, proposal.draft.tokens),
                                tokens, context_->confidence(one.row, i));
            if (!extended || !proposal.wants_more()) break;
        }
        context_->cut(proposal.sequence, one.follower->n_held());
    }
}

}  // namespace specllama
