#include "sample/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sample/argmax.h"
#include "sample/probability.h"

namespace specllama {

namespace {

double weight(const Candidate& candidate, double highest) {
    return std::exp(candidate.logit - highest);
}

// Depths below the highest logit: the first one that top-p tries, and the one at which no
// probability is left.
constexpr double kShallow = 8;
constexpr double kDeepest = 1024;

// Only minus infinity is lower: the token is forbidden.
constexpr double kLowest = std::numeric_limits<float>::lowest();

// The standard deviation of the logits that are not forbidden.
double deviation(std::span<const float> logits) {
    double n = 0;
    double sum = 0;
    for (const float logit : logits) {
        if (logit < kLowest) continue;
        ++n;
        sum += logit;
    }
    const double average = sum / n;
    double squares = 0;
    for (const float logit : logits)
        if (logit >= kLowest) squares += (logit - average) * (logit - average);
    return std::sqrt(squares / n);
}

}  // namespace

Candidates::Candidates(const SamplingOptions& options, std::size_t n_vocab)
    : top_n_sigma_(options.top_n_sigma),
      top_k_(std::max(options.top_k, 0)),
      typical_p_(options.typical_p),
      top_p_(options.top_p),
      min_p_(options.min_p),
      xtc_threshold_(options.xtc_threshold) {
    if (cuts() || options.xtc_probability > 0 || options.processed_logprobs ||
        options.acceptance == AcceptanceRule::rejection)
        kept_.reserve(top_k_ > 0 ? std::min(top_k_, n_vocab) : n_vocab);
}

std::span<const Candidate> Candidates::cut(std::span<const float> logits,
                                           std::span<const float> peaks, bool exclude) {
    kept_.clear();
    float highest = *std::ranges::max_element(peaks);
    if (cuts_first())
        take_first(logits, peaks, highest);
    else if (top_p_ < 1)
        take_top_p(logits, peaks, highest);
    else
        take_from(logits, peaks, std::max(highest + std::log(min_p_), kLowest));
    if (min_p_ > 0) {
        if (!keep_likeliest()) highest = std::ranges::min(kept_, likelier).logit;
        keep_from(highest + std::log(min_p_));
    }
    if (exclude) exclude_top(highest);
    return kept_;
}

void Candidates::take_first(std::span<const float> logits, std::span<const float> peaks,
                            float highest) {
    const double least =
        top_n_sigma_ > 0 ? std::max(highest - top_n_sigma_ * deviation(logits), kLowest) : kLowest;
    if (top_k_ > 0 && top_k_ < logits.size()) {
        take_top_k(logits, peaks);
        keep_from(least);
    } else {
        take_from(logits, peaks, least);
    }
    if (typical_p_ < 1) keep_typical(highest);
    if (top_p_ < 1) keep_top_p(kept_weight(highest), highest);
}

// Keeps a heap of the best k so far, the worst of them on top. Most of a large vocabulary is
// skipped with one comparison per part.
void Candidates::take_top_k(std::span<const float> logits, std::span<const float> peaks) {
    for (std::size_t i = 0; i < peaks.size(); ++i) {
        if (kept_.size() == top_k_ && peaks[i] <= kept_.front().logit) continue;
        auto token = static_cast<Token>(i * kPartLogits);
        for (const float logit : part(logits, i)) {
            const Candidate candidate{logit, token++};
            if (logit < kLowest) continue;
            if (kept_.size() == top_k_) {
                if (logit <= kept_.front().logit) continue;
                std::ranges::pop_heap(kept_, likelier);
                kept_.pop_back();
            }
            kept_.push_back(candidate);
            std::ranges::push_heap(kept_, likelier);
        }
    }
}

// Takes the tokens near the highest logit, and doubles the depth until they have the required
// probability: most of a large vocabulary has almost none.
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

void Candidates::keep_from(double least) {
    std::erase_if(kept_, [&](const Candidate& candidate) { return candidate.logit < least; });
}

// A token's information is -log p, and its average is the entropy. So their difference is that of
// the token's logit from the average of the logits, weighted by probability.
void Candidates::keep_typical(float highest) {
    const double total = kept_weight(highest);
    double sum = 0;
    for (const Candidate& one : kept_) sum += weight(one, highest) * (double{one.logit} - highest);
    const double average = highest + sum / total;
    keep_first(typical_p_ * total, highest, [&](const Candidate& a, const Candidate& b) {
        const double from_a = std::abs(a.logit - average);
        const double from_b = std::abs(b.logit - average);
        return from_a != from_b ? from_a < from_b : likelier(a, b);
    });
}

void Candidates::keep_top_p(double total, float highest) {
    keep_first(top_p_ * total, highest, likelier);
}

// Sorts from the front, one part at a time, until the sorted part has the required weight.
template <typename Order>
void Candidates::keep_first(double wanted, float highest, Order order) {
    double sum = 0;
    for (std::size_t from = 0, n = 64; from < kept_.size(); n *= 4) {
        const std::size_t to = std::min(from + n, kept_.size());
        const auto begin = kept_.begin() + static_cast<std::ptrdiff_t>(from);
        const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(to);
        std::nth_element(begin, end, kept_.end(), order);
        std::sort(begin, end, order);
        for (; from < to; ++from) {
            sum += weight(kept_[from], highest);
            if (sum >= wanted) {
                kept_.resize(from + 1);
                return;
            }
        }
    }
}

void Candidates::exclude_top(float highest) {
    const double least = xtc_threshold_ * kept_weight(highest);
    const Candidate* last = nullptr;  // last of the top choices
    for (const Candidate& one : kept_)
        if (weight(one, highest) >= least && (last == nullptr || likelier(*last, one))) last = &one;
    if (last == nullptr) return;
    const Candidate kept = *last;
    std::erase_if(kept_, [&](const Candidate& one) { return likelier(one, kept); });
}

}  // namespace specllama
