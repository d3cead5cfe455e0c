#pragma once

#include <array>

#include "specllama/types.h"

namespace specllama {

// What the context adds to a decode of n tokens: (a + b (n - 1)) seconds for each token of context,
// with a, b >= 0. The KV memory is read once for any n (a), and computed with n times (b).
//
// Learned from two successive decodes of the same n where the second has the shorter context, which
// happens when a new request begins; pairs are weighted by the square of the difference. Within a
// request the context grows as slowly as a machine heats up, so the two could not be told apart.
class ContextSlope {
 public:
    void observe(int n, int n_context, double seconds);

    double seconds(int n, int n_context) const {
        return (base_ + per_token_ * (n - 1)) * n_context;
    }

    double base() const { return base_; }
    double per_token() const { return per_token_; }
    // Starts anew from a (base) and b (per_token) of an earlier session.
    void set(double base, double per_token);

 private:
    // The last decode of one n, and sums over its pairs: of dc^2 and of dc * ds, where dc and ds
    // are the differences in context and in seconds.
    struct Pairs {
        int context = -1;
        double seconds = 0;
        double squares = 0;
        double products = 0;
    };
    void fit();

    std::array<Pairs, kMaxSpecLength + 1> pairs_{};  // [n - 1]
    double base_ = 0;
    double per_token_ = 0;
    // What fit() stays near while little was seen.
    double prior_base_ = 0;
    double prior_per_token_ = 0;
};

}  // namespace specllama
