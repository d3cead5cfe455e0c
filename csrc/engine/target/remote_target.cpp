#include "engine/target/remote_target.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "specllama/error.h"
#include "system/clock.h"

namespace specllama {

namespace {

constexpr std::size_t kTrips = 15;

// Converts the main path, and for each other leaf the part of its path after it leaves the main
// path.
void to_request(const Tree& tree, RequestDraft& draft) {
    draft.tokens.clear();
    draft.branches.clear();
    const int n_main_path = tree.empty() ? 0 : tree.n_main_path();
    for (int node = 0; node < tree.size(); ++node) {
        if (node < n_main_path) {
            draft.tokens.push_back(tree[node].token);
            continue;
        }
        if (tree.first_child(node) != Tree::kNone) continue;
        std::vector<Token> branch;
        int at = node;
        for (; at >= n_main_path; at = tree[at].parent) branch.push_back(tree[at].token);
        std::ranges::reverse(branch);
        draft.branches.emplace_back(at + 1, std::move(branch));
    }
}

}  // namespace

RemoteTarget::RemoteTarget(std::shared_ptr<Verifier> verifier) : verifier_(std::move(verifier)) {
    for (const double seconds : verifier_->info().round_trips) observe_trip(seconds);
}

DraftLimits RemoteTarget::limits(DraftLimits wanted) const {
    const SessionInfo& about = verifier_->info().session;
    return {std::min(wanted.depth, about.max_draft_length),
            std::min(wanted.nodes, about.max_draft_tokens)};
}

DraftLimits RemoteTarget::limits(const Sequence& sequence, DraftLimits wanted) const {
    const DraftLimits alone = limits(wanted);
    const int n_room = verifier_->info().session.n_ctx - sequence.n_tokens();
    return {std::min(alone.depth, n_room), std::min(alone.nodes, n_room)};
}

double RemoteTarget::overhead() const { return overhead_; }

void RemoteTarget::observe_trip(double seconds) {
    trips_.push_back(std::max(seconds, 0.0));
    if (trips_.size() > kTrips) trips_.pop_front();
    std::vector<double> sorted(trips_.begin(), trips_.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::ranges::nth_element(sorted, middle);
    overhead_ = *middle;
}

void RemoteTarget::begin(Sequence& sequence) {
    SamplingOptions sampling = sequence.sampler().options();
    sampling.seed = sequence.stats.seed;
    verifier_->begin({.sequence = sequence.id(),
                      .prompt = sequence.tokens().first(sequence.n_prompt()),
                      .generated = sequence.generated(),
                      .max_tokens = sequence.n_generated() + sequence.n_tokens_left(),
                      .sampling = std::move(sampling),
                      .cache_prompt = sequence.caches_prompt()});
    entered_.push_back(&sequence);
}

void RemoteTarget::end(Sequence& sequence) {
    std::erase(entered_, &sequence);
    verifier_->end(sequence.id());
}

void RemoteTarget::prefill(std::span<Sequence* const> sequences, std::vector<Sequence*>& ready,
                           std::vector<Decode>& /*decodes*/) {
    ready.clear();
    reading_.clear();
    for (Sequence* sequence : sequences)
        if (sequence->in_prompt())
            reading_.push_back(sequence->id());
        else
            ready.push_back(sequence);
    if (reading_.empty()) return;
    const std::vector<SequenceId> read = verifier_->prefilled(reading_, ready.empty());
    for (Sequence* sequence : sequences) {
        if (!sequence->in_prompt() || std::ranges::find(read, sequence->id()) == read.end())
            continue;
        sequence->set_cached(sequence->n_tokens() - 1);
        ready.push_back(sequence);
    }
}

std::size_t RemoteTarget::verify(std::span<Verification> drafts, int /*n_padding*/,
                                 std::vector<Decode>& decodes) {
    if (drafts_.size() < drafts.size()) drafts_.resize(drafts.size());
    requests_.clear();
    for (std::size_t i = 0; i < drafts.size(); ++i) {
        const Sequence& sequence = *drafts[i].sequence;
        to_request(*drafts[i].draft, drafts_[i]);
        requests_.push_back({.sequence = sequence.id(),
                             .tokens = sequence.tokens(),
                             .n_prompt = sequence.n_prompt(),
                             .draft = &drafts_[i]});
    }
    const Stopwatch watch;
    std::vector<VerifyAnswer> answers = verifier_->verify(requests_);
    const double seconds = watch.seconds();
    // Requests that arrive together share a decode of the server, or wait for each other.
    Decode decode;
    bool usual = true;  // no prompt was read, and nothing failed
    for (std::size_t i = 0; i < drafts.size(); ++i) {
        Sequence& sequence = *drafts[i].sequence;
        const VerifyAnswer& answer = answers[i];
        usual = usual && !sequence.in_prompt() && !answer.error;
        decode.n_rows += sequence.n_pending() + answer.n_verified;
        decode.n_context += sequence.n_tokens() / static_cast<int>(drafts.size());
        decode.seconds = std::max(decode.seconds, answer.seconds);
        drafts[i].seconds = seconds;
        (sequence.in_prompt() ? sequence.stats.seconds.prefill : sequence.stats.seconds.verify) +=
            seconds;
    }
    if (usual) {
        observe_trip(seconds - decode.seconds);
        decodes.push_back(decode);
    }
    for (std::size_t i = 0; i < drafts.size(); ++i) take(drafts[i], answers[i]);
    return drafts.size();
}

// Walks along the target's tokens. After those that the draft decides, tokens forced by the grammar
// may follow.
void RemoteTarget::take(Verification& one, VerifyAnswer& answer) {
    Sequence& sequence = *one.sequence;
    const auto n_vocab = static_cast<Token>(verifier_->info().vocabulary.pieces.size());
    if (std::ranges::any_of(answer.tokens,
                            [&](Token token) { return token < 0 || token >= n_vocab; }))
        answer.error = std::make_exception_ptr(
            DecodeError("The target returned a token that its vocabulary of " +
                        std::to_string(n_vocab) + " tokens does not contain."));
    if (answer.tokens.empty() && answer.finish_reason == FinishReason::none && !answer.error)
        answer.error = std::make_exception_ptr(DecodeError("The target returned no token."));
    if (answer.error) {
        sequence.fail(std::move(answer.error));
        return;
    }
    sequence.stats.exact = answer.exact;
    sequence.stats.reused_tokens = answer.n_reused;
    bool on_path = true;
    for (std::size_t i = 0; i < answer.tokens.size() && !sequence.done(); ++i) {
        std::optional<TokenLogprobs> logprobs;
        if (i < answer.logprobs.size()) logprobs = std::move(answer.logprobs[i]);
        if (on_path) {
            on_path = one.accept(answer.tokens[i], std::move(logprobs));
        } else {
            sequence.commit(answer.tokens[i], false, std::move(logprobs));
            ++sequence.stats.forced;
            ++sequence.stats.chosen_tokens;
        }
    }
    if (!sequence.done() && answer.finish_reason != FinishReason::none) {
        one.last = kNothingLeft;
        sequence.finish(answer.finish_reason);
    }
    one.verified = true;
}

void RemoteTarget::rewind(Sequence& sequence, int keep) { sequence.set_cached(keep); }

void RemoteTarget::restore() {
    for (Sequence* sequence : entered_)
        rewind(*sequence, std::min(sequence->n_cached(), sequence->n_tokens()));
}

}  // namespace specllama
