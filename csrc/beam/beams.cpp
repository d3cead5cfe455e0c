#include "beam/beams.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "sample/argmax.h"
#include "sample/probability.h"

namespace specllama {

void add_extensions(const Trie& trie, const Hypothesis& hypothesis,
                    std::vector<Extension>& extensions) {
    for (const Successor& one : trie.successors(hypothesis.node)) {
        if (one.logprob == -std::numeric_limits<double>::infinity()) return;
        extensions.push_back({hypothesis.node, one, hypothesis.logprob + one.logprob});
    }
}

void rank(std::vector<Extension>& extensions) {
    std::ranges::stable_sort(extensions, std::ranges::greater(), &Extension::logprob);
}

Beams::Beams(Trie& trie, BeamOptions options, int max_tokens)
    : trie_(trie), options_(std::move(options)), max_tokens_(max_tokens) {}

double Beams::score(double logprob, int n_tokens) const {
    return logprob / std::pow(n_tokens, options_.length_penalty);
}

void Beams::step(const Ends& ends) {
    const auto n_beams = static_cast<std::size_t>(options_.n_beams);
    extensions_.clear();
    for (const Hypothesis& one : running_) add_extensions(trie_, one, extensions_);
    rank(extensions_);
    running_.clear();
    ++n_steps_;
    for (std::size_t i = 0; i < extensions_.size(); ++i) {
        if (i >= n_beams && (running_.size() == n_beams || n_steps_ == max_tokens_)) break;
        const Extension& one = extensions_[i];
        FinishReason reason = ends(one.parent, one.successor.token);
        if (reason == FinishReason::none && n_steps_ == max_tokens_) reason = FinishReason::length;
        if (reason != FinishReason::none && i >= n_beams) continue;
        const NodeId node = trie_.child(one.parent, one.successor.token);
        if (reason == FinishReason::none)
            running_.push_back({node, one.logprob});
        else
            ended_.push_back({node, one.logprob, score(one.logprob, n_steps_), reason});
    }
    std::ranges::stable_sort(ended_, std::ranges::greater(), &Ended::score);
    if (ended_.size() > n_beams) ended_.resize(n_beams);
    done_ = is_over();
}

bool Beams::is_over() const {
    if (running_.empty() || n_steps_ == max_tokens_) return true;
    if (std::ssize(ended_) < options_.n_beams) return false;
    if (options_.early_stopping == EarlyStopping::yes) return true;
    const bool may_grow =
        options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
    return score(running_.front().logprob, may_grow ? max_tokens_ : n_steps_) <=
           ended_.back().score;
}

bool best_successors(std::span<const float> logits, std::span<Successor> out) {
    const Token likeliest = argmax(logits);
    if (likeliest == kNoToken || !std::isfinite(logits[likeliest])) return false;
    const auto better = [](const Successor& a, const Successor& b) {
        return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
    };
    // A heap of the best so far, with the worst of them in front. Ids ascend, so a later equal is
    // not better.
    std::size_t n = 0;
    for (; n < out.size(); ++n) out[n] = {static_cast<Token>(n), logits[n]};
    std::ranges::make_heap(out, better);
    for (; n < logits.size(); ++n) {
        if (logits[n] <= out.front().logprob) continue;
        std::ranges::pop_heap(out, better);
        out.back() = {static_cast<Token>(n), logits[n]};
        std::ranges::push_heap(out, better);
    }
    std::ranges::sort_heap(out, better);
    const float highest = logits[likeliest];
    const double log_sum = std::log(exp_sum(logits, highest));
    for (Successor& one : out) one.logprob = one.logprob - highest - log_sum;
    return true;
}

}  // namespace specllama
