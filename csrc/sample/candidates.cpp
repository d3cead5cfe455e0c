#include "sample/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sample/argmax.h"
#include "sample/probability.h"

namespace specllama {

namespace {

// The more likely first; the lower id among equals.
bool before(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

double weight(const Candidate& candidate, double highest) {
    return std::exp(candidate.logit - highest);
}

// Depths below the highest logit: where top-p looks first, and where no probability is left.
constexpr double kShallow = 8;
constexpr double kDeepest = 1024;

// What is lower is minus infinity: the token is forbidden.
constexpr double kLowest = std::numeric_limits<float>::lowest();

}  // namespace

Candidates::Candidates(const SamplingOptions& options, std::size_t n_vocab)
    : top_k_(std::max(options.top_k, 0)), top_p_(options.top_p), min_p_(options.min_p) {
    if (cuts() || options.processed_logprobs || options.acceptance == AcceptanceRule::rejection)
        kept_.reserve(top_k_ > 0 ? std::min(top_k_, n_vocab) : n_vocab);
}

std::span<const Candidate> Candidates::cut(std::span<const float> logits,
                                           std::span<const float> peaks) {
    kept_.clear();
    const float highest = *std::ranges::max_element(peaks);
    const double least = std::max(highest + std::log(min_p_), kLowest);
    if (top_k_ > 0 && top_k_ < logits.size()) {
        take_top_k(logits, peaks);
        if (top_p_ < 1) keep_top_p(kept_weight(highest), highest);
    } else if (top_p_ < 1) {
        take_top_p(logits, peaks, highest);
    } else {
        take_from(logits, peaks, least);
    }
    if (min_p_ > 0) std::erase_if(kept_, [&](const Candidate& c) { return c.logit < least; });
    return kept_;
}

// Keeps a heap of the best k so far, the worst of them on top. Most of a large vocabulary is passed
// over with one comparison per part.
void Candidates::take_top_k(std::span<const float> logits, std::span<const float> peaks) {
    for (std::size_t i = 0; i < peaks.size(); ++i) {
        if (kept_.size() == top_k_ && peaks[i] <= kept_.front().logit) continue;
        auto token = static_cast<Token>(i * kPartLogits);
        for (const float logit : part(logits, i)) {
            const Candidate candidate{logit, token++};
            if (logit < kLowest) continue;
            if (kept_.size() == top_k_) {
                if (logit <= kept_.front().logit) continue;
                std::ranges::pop_heap(kept_, before);
                kept_.pop_back();
            }
            kept_.push_back(candidate);
            std::ranges::push_heap(kept_, before);
        }
    }
}

// Takes the tokens near the highest logit, and doubles the depth until they have the probability
// wanted: most of a large vocabulary has next to none.
void Candidates::take_top_p(std::span<const float> logits, std::span<const float> peaks,
                            float highest) {
    const double total = exp_sum(logits, highest);
    double depth = kShallow;
    do {
        kept_.clear();
        take_from(logits, peaks, std::max(highest - depth, kLowest));
        depth *= 2;
    } while (kept_weight(highest) < top_p_ * total && depth <= kDeepest);
    keep_top_p(total, highest);
}

void Candidates::take_from(std::span<const float> logits, std::span<const float> peaks,
                           double least) {
    for (std::size_t i = 0; i < peaks.size(); ++i) {
        if (peaks[i] < least) continue;
        auto token = static_cast<Token>(i * kPartLogits);
        for (const float logit : part(logits, i)) {
            if (logit >= least) kept_.push_back({logit, token});
            ++token;
        }
    }
}

double Candidates::kept_weight(float highest) const {
    double sum = 0;
    for (const Candidate& candidate : kept_) sum += weight(candidate, highest);
    return sum;
}

// Sorts from the front, a part at a time, until the sorted part has the probability wanted.
void Candidates::keep_top_p(double total, float highest) {
    double sum = 0;
    for (std::size_t from = 0, n = 64; from < kept_.size(); n *= 4) {
        const std::size_t to = std::min(from + n, kept_.size());
        const auto begin = kept_.begin() + static_cast<std::ptrdiff_t>(from);
        const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(to);
        std::nth_element(begin, end, kept_.end(), before);
        std::sort(begin, end, before);
        for (; from < to; ++from) {
            sum += weight(kept_[from], highest);
            if (sum >= top_p_ * total) {
                kept_.resize(from + 1);
                return;
            }
        }
    }
}

}  // namespace specllama
