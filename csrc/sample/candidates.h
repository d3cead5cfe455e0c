#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "specllama/config.h"
#include "specllama/types.h"

namespace specllama {

struct Candidate {
    float logit;
    Token token;
};

// The tokens that top_k, top_p and min_p leave of a row, in this order, as in llama.cpp's chain.
class Candidates {
 public:
    // Allocates what cutting a row of n_vocab logits may take.
    Candidates(const SamplingOptions& options, std::size_t n_vocab);

    // Whether anything is cut at all.
    bool cuts() const { return top_k_ > 0 || top_p_ < 1 || min_p_ > 0; }

    // Most candidates that can be left.
    std::size_t most() const { return kept_.capacity(); }

    // What is left of a row without NaN, whose parts have these peaks (see argmax): at least one
    // token; valid until the next call.
    std::span<const Candidate> cut(std::span<const float> logits, std::span<const float> peaks);

 private:
    void take_top_k(std::span<const float> logits, std::span<const float> peaks);
    void take_top_p(std::span<const float> logits, std::span<const float> peaks, float highest);
    void take_from(std::span<const float> logits, std::span<const float> peaks, double least);
    double kept_weight(float highest) const;
    void keep_top_p(double total, float highest);

    std::size_t top_k_;
    double top_p_;
    double min_p_;
    std::vector<Candidate> kept_;
};

}  // namespace specllama
