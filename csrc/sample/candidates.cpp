#include "sample/candidates.h"

#include <algorithm>
#include <cmath>

namespace specllama {

namespace {

// The more likely first; the lower id among equals.
bool before(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

}  // namespace

Candidates::Candidates(const SamplingOptions& options, std::size_t n_vocab)
    : top_k_(options.top_k), top_p_(options.top_p), min_p_(options.min_p) {
    if (cuts() || options.processed_logprobs || options.acceptance == AcceptanceRule::rejection)
        kept_.reserve(top_k_ > 0 ? std::min(top_k_, n_vocab) : n_vocab);
}

std::span<const Candidate> Candidates::cut(std::span<const float> logits) {
    kept_.clear();
    if (top_k_ > 0 && top_k_ < logits.size()) {
        keep_top_k(logits);
    } else {
        for (std::size_t i = 0; i < logits.size(); ++i)
            kept_.push_back({logits[i], static_cast<Token>(i)});
    }
    if (top_p_ < 1) keep_top_p();
    if (min_p_ > 0) keep_min_p();
    return kept_;
}

// A heap of the best k so far, the worst of them on top: most of a large vocabulary is passed over
// with one comparison each.
void Candidates::keep_top_k(std::span<const float> logits) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
        if (kept_.size() == top_k_) {
            if (logits[i] <= kept_.front().logit) continue;
            std::ranges::pop_heap(kept_, before);
            kept_.pop_back();
        }
        kept_.push_back({logits[i], static_cast<Token>(i)});
        std::ranges::push_heap(kept_, before);
    }
}

// Sorts from the front, a part at a time, until the sorted part has the probability wanted.
void Candidates::keep_top_p() {
    const float highest = std::ranges::min_element(kept_, before)->logit;
    const auto weight = [&](const Candidate& c) {
        return std::exp(static_cast<double>(c.logit) - highest);
    };
    double total = 0;
    for (const Candidate& candidate : kept_) total += weight(candidate);

    double sum = 0;
    for (std::size_t from = 0, n = 64; from < kept_.size(); n *= 4) {
        const std::size_t to = std::min(from + n, kept_.size());
        std::nth_element(kept_.begin() + from, kept_.begin() + to, kept_.end(), before);
        std::sort(kept_.begin() + from, kept_.begin() + to, before);
        for (; from < to; ++from) {
            sum += weight(kept_[from]);
            if (sum >= top_p_ * total) {
                kept_.resize(from + 1);
                return;
            }
        }
    }
}

void Candidates::keep_min_p() {
    const Candidate best = *std::ranges::min_element(kept_, before);
    const double least = best.logit + std::log(min_p_);
    std::erase_if(kept_, [&](const Candidate& c) { return c.logit < least; });
    // min_p = 1 and rounding must not throw the best one out, too.
    if (kept_.empty()) kept_.push_back(best);
}

}  // namespace specllama
