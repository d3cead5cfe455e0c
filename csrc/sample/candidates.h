#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "specllama/generate_options.h"
#include "specllama/types.h"

namespace specllama {

struct Candidate {
    float logit;
    Token token;
};

// The more likely first; the lower id among equals.
inline bool likelier(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// The tokens of a row that are left after top_n_sigma, top_k, typical_p, top_p, min_p and XTC,
// applied in this order as in llama.cpp's chain.
class Candidates {
 public:
    // Allocates everything needed to cut a row of n_vocab logits.
    Candidates(const SamplingOptions& options, std::size_t n_vocab);

    // Whether anything is cut, apart from XTC.
    bool cuts() const { return cuts_first() || top_p_ < 1 || min_p_ > 0; }

    // Whether the likeliest token is always kept, apart from XTC.
    bool keep_likeliest() const { return typical_p_ >= 1; }

    // Most candidates that can be left.
    std::size_t most() const { return kept_.capacity(); }

    // Cuts a row and returns the remaining tokens: at least one, none of them forbidden (minus
    // infinity), valid until the next call. The row must have a finite logit, and no NaN or plus
    // infinity. peaks: of its parts, see argmax. exclude: XTC removes the top choices.
    std::span<const Candidate> cut(std::span<const float> logits, std::span<const float> peaks,
                                   bool exclude = false);

 private:
    // Steps before top_p: it sums the probabilities of the tokens that they leave.
    bool cuts_first() const { return top_k_ > 0 || typical_p_ < 1 || top_n_sigma_ > 0; }

    void take_first(std::span<const float> logits, std::span<const float> peaks, float highest);
    void take_top_k(std::span<const float> logits, std::span<const float> peaks);
    void take_top_p(std::span<const float> logits, std::span<const float> peaks, float highest);
    void take_from(std::span<const float> logits, std::span<const float> peaks, double least);
    double kept_weight(float highest) const;
    void keep_from(double least);
    void keep_typical(float highest);
    void keep_top_p(double total, float highest);
    template <typename Order>
    void keep_first(double wanted, float highest, Order order);
    void exclude_top(float highest);

    double top_n_sigma_;
    std::size_t top_k_;
    double typical_p_;
    double top_p_;
    double min_p_;
    double xtc_threshold_;
    std::vector<Candidate> kept_;
};

}  // namespace specllama
