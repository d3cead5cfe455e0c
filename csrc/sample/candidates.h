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

// The tokens of a row that are left after top_k, top_p and min_p, applied in this order as in
// llama.cpp's chain.
class Candidates {
 public:
    // Allocates all that cutting a row of n_vocab logits may need.
    Candidates(const SamplingOptions& options, std::size_t n_vocab);

    // Whether anything is cut at all.
    bool cuts() const { return top_k_ > 0 || top_p_ < 1 || min_p_ > 0; }

    // Most candidates that can be left.
    std::size_t most() const { return kept_.capacity(); }

    // Cuts a row and returns what is left: at least one token, none of them forbidden (minus
    // infinity), valid until the next call. The row has a finite logit, and holds no NaN and no
    // plus infinity. peaks: those of its parts, see argmax.
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
