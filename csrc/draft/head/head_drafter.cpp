#include "draft/head/head_drafter.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "gguf/head_file.h"
#include "specllama/error.h"

namespace specllama {

HeadDrafter::HeadDrafter(const std::shared_ptr<const Model>& target, const DraftPlan& plan,
                         const Header* head, const ProgressFunction& progress)
    : sampler_(plan, target->vocab().size()), context_options_(plan.context), head_(target) {
    if (head == nullptr) return;
    if (head->is_prediction) {
        check_prediction(*head, target->header());
    } else {
        kind_ = HeadContext::Kind::eagle3;
        layers_ = check_eagle3(plan.model.path, target->header());
    }
    head_ = Model::load(plan.model, Kernels::fastest, *head, progress, head->is_prediction);
    check_vocabulary(*head_, *target, "The head");
}

void HeadDrafter::attach(Context& target) {
    target_ = &target;
    context_.emplace(head_, kind_, context_options_, target);
    target.keep_states(layers_);
}

float* HeadDrafter::state(Follower& follower, int i) const {
    return follower.states.data() + static_cast<std::size_t>(i) * context_->n_state();
}

void HeadDrafter::begin(SequenceId sequence, TokenSpan prompt, TokenSpan) {
    Follower& follower = followers_[sequence];
    const auto n_waiting = static_cast<std::size_t>(context_->n_batch());
    follower.states.resize(n_waiting * context_->n_state());
    follower.features.resize(n_waiting * target_->n_features());
    follower.chain.resize(static_cast<std::size_t>(context_->n_layers()) * context_->n_state());
    follower.tokens.reserve(target_->n_ctx() + kMaxSpecLength);
    follower.pairs.reserve(target_->n_ctx());
    sampler_.begin(sequence);
    reuse(sequence, prompt);
    keep(sequence, follower, follower.n_common(prompt));
}

// Copies the beginning of a prompt from another sequence's memory, if that is faster.
void HeadDrafter::reuse(SequenceId sequence, TokenSpan prompt) {
    Follower& own = followers_.at(sequence);
    const auto [from_id, from, n] = longest_prefix(followers_, own, prompt);
    if (from == nullptr) return;
    // The state of the last of these tokens is paired with the other sequence's next token, so this
    // pair is not copied.
    own.tokens.assign(prompt.begin(), prompt.begin() + n);
    own.n_seen = n - 1;
    own.n_known = own.n_raw = 0;
    const auto behind = std::ranges::lower_bound(from->pairs, own.n_seen);
    own.pairs.assign(from->pairs.begin(), behind);
    context_->copy(from_id, sequence, own.n_pairs());
}

// Forgets all states and pairs that depend on tokens after the first n.
void HeadDrafter::keep(SequenceId sequence, Follower& follower, int n) {
    if (n >= follower.n_seen) return;
    const int n_waiting = std::max(n - follower.first(), 0);
    follower.n_known = std::min(follower.n_known, n_waiting);
    follower.n_raw = n_waiting - follower.n_known;
    std::vector<Position>& pairs = follower.pairs;
    while (!pairs.empty() && pairs.back() + 1 >= n) pairs.pop_back();
    context_->cut(sequence, follower.n_pairs());
    // If the state of the last kept token is not waiting, it is lost, but the target may provide it
    // again.
    follower.n_seen = n_waiting > 0 ? n : std::max(n - 1, 0);
}

void HeadDrafter::process(SequenceId sequence, TokenSpan tokens, Position first,
                          std::span<const int> rows) {
    Follower& follower = followers_.at(sequence);
    if (first > follower.n_seen) {
        ingest(sequence, follower);
        follower.n_known = 0;
    }
    follower.add(tokens, first, rows, [&](int row) {
        if (follower.n_waiting() == context_->n_batch()) ingest(sequence, follower);
        target_->copy_states(row,
                             follower.features.data() +
                                 static_cast<std::size_t>(follower.n_raw) * target_->n_features());
        ++follower.n_raw;
    });
}

int HeadDrafter::n_unprocessed(SequenceId sequence, int /*n_tokens*/) const {
    return std::max(followers_.at(sequence).n_waiting() - 1, 0);
}

// Converts the waiting features to known states.
void HeadDrafter::encode(Follower& follower) {
    const int n = std::exchange(follower.n_raw, 0);
    const int n_known = std::exchange(follower.n_known, 0);
    if (n > 0) context_->encode(follower.features.data(), n, state(follower, n_known));
    follower.n_known = n_known + n;
}

// Decodes the pairs of all waiting states but the last, with every layer. Returns the number of
// decoded pairs. All layers use the same memory cell for a pair.
int HeadDrafter::ingest(SequenceId sequence, Follower& follower) {
    encode(follower);
    const int n = follower.n_known - 1;
    if (n < 1) return 0;
    context_->clear();
    add_waiting(sequence, follower, n, false);
    try {
        for (int layer = 0; layer < context_->n_layers(); ++layer) {
            context_->cut(sequence, follower.n_pairs());
            context_->decode(layer);
        }
    } catch (...) {
        context_->cut(sequence, follower.n_pairs());
        follower.n_known = 0;
        throw;
    }
    waiting_decoded(follower);
    return n * context_->n_layers();
}

// Adds the pairs of the first n waiting states to the batch. Returns the row of the last one, which
// has logits if `logits` is set.
int HeadDrafter::add_waiting(SequenceId sequence, const Follower& follower, int n, bool logits) {
    int row = -1;
    for (int i = 0; i < n; ++i)
        row = context_->add(
            follower.tokens[follower.first() + i + 1],
            follower.states.data() + static_cast<std::size_t>(i) * context_->n_state(),
            follower.n_pairs() + i, sequence, logits && i == n - 1);
    return row;
}

// Records that the pairs of all waiting states but the last are in the memory.
void HeadDrafter::waiting_decoded(Follower& follower) {
    for (Position position = follower.first(); position < follower.n_seen - 1; ++position)
        follower.pairs.push_back(position);
    std::copy_n(state(follower, follower.n_known - 1), context_->n_state(), state(follower, 0));
    follower.n_known = 1;
}

void HeadDrafter::propose(std::span<DraftRequest> proposals) {
    drafting_.clear();
    context_->adapt_threads();
    try {
        start(proposals);
        draft();
    } catch (const Error& error) {
        for (const Drafting& one : drafting_) {
            one.proposal->error = error.what();
            context_->cut(one.proposal->sequence, one.follower->n_pairs());
        }
    }
}

// Selects the sequences that draft. States are ingested if more wait than a sequence's quota of a
// batch. States of a chain are always ingested, since the draft would decode them with its first
// layer only.
void HeadDrafter::start(std::span<DraftRequest> proposals) {
    for (DraftRequest& proposal : proposals) {
        Follower& follower = followers_.at(proposal.sequence);
        if (follower.n_waiting() > 0 && follower.begin_draft(proposal))
            drafting_.push_back({&proposal, &follower, 0});
    }
    if (drafting_.empty()) return;
    const int quota = context_->n_batch() / static_cast<int>(drafting_.size());
    for (const Drafting& one : drafting_) {
        if (one.follower->n_waiting() > quota || is_chain())
            one.proposal->n_decoded += ingest(one.proposal->sequence, *one.follower);
        encode(*one.follower);
    }
}

// Drafts token by token, one decode for all sequences that want another token.
void HeadDrafter::draft() {
    for (int step = 0; !drafting_.empty(); ++step) {
        context_->clear();
        for (Drafting& one : drafting_) add_step(one, step);
        context_->decode(is_chain() ? step : 0);
        const bool is_last = is_chain() && step + 1 == context_->n_layers();
        for (const Drafting& one : drafting_) {
            Follower& follower = *one.follower;
            if (is_chain()) {
                one.proposal->n_decoded += step + 1;
                std::copy_n(context_->state(one.row), context_->n_state(),
                            follower.chain.begin() + std::ptrdiff_t{step} * context_->n_state());
            } else {
                one.proposal->n_decoded += step == 0 ? follower.n_known : 1;
                if (step == 0) waiting_decoded(follower);
            }
        }
        std::erase_if(drafting_, [&](const Drafting& one) {
            const bool continues =
                sampler_.extend(*one.proposal, context_->logits(one.row), one.follower->tokens) &&
                !is_last && one.proposal->wants_more();
            if (!continues) context_->cut(one.proposal->sequence, one.follower->n_pairs());
            return !continues;
        });
    }
}

// Adds the rows of a sequence for one step to the batch: first the waiting states, then the last
// drafted token. A layer of a chain has not seen the tokens that other layers drafted, so all of
// them are decoded again.
void HeadDrafter::add_step(Drafting& one, int step) {
    Follower& follower = *one.follower;
    const SequenceId sequence = one.proposal->sequence;
    if (step > 0 && !is_chain()) {
        one.row = context_->add(follower.tokens.back(), context_->state(one.row),
                                follower.n_pairs() + one.proposal->draft.size(), sequence, true);
        return;
    }
    context_->cut(sequence, follower.n_pairs());
    one.row = add_waiting(sequence, follower, follower.n_known, step == 0);
    for (int i = 0; i < step; ++i)
        one.row = context_->add(follower.tokens[follower.n_seen + 1 + i],
                                follower.chain.data() + std::ptrdiff_t{i} * context_->n_state(),
                                follower.n_pairs() + 1 + i, sequence, i == step - 1);
}

}  // namespace specllama
