#pragma once

#include <array>

#include "specllama/types.h"

namespace specllama {

// What the context adds to the time of a decode: seconds per token of context for a decode of n
// tokens, as a + b (n - 1), neither negative. Reading the KV memory costs the same for any n (a);
// computing with it is done n times (b).
//
// Learned from decodes of the same n at different contexts, each weighted by its own time.
class ContextSlope {
 public:
    void observe(int n, int n_context, double seconds);

    double seconds(int n, int n_context) const {
        return (base_ + per_token_ * (n - 1)) * n_context;
    }

    double base() const { return base_; }
    double per_token() const { return per_token_; }
    // Starts anew, from numbers learned before.
    void set(double base, double per_token);

 private:
    // Moments of (context, seconds) over the decodes of one n.
    struct Moments {
        double weight = 0;
        double context = 0;
        double seconds = 0;
        double variance = 0;    // sum of squares of the context about its mean
        double covariance = 0;  // of context and seconds
    };
    void fit();

    std::array<Moments, kMaxSpecLength + 1> moments_{};  // [n - 1]
    double base_ = 0;
    double per_token_ = 0;
    // What fit() falls back on where little was seen.
    double prior_base_ = 0;
    double prior_per_token_ = 0;
};

}  // namespace specllama
