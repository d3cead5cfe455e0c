#pragma once

#include <array>

#include "specllama/types.h"

namespace specllama {

// The cost of the context in a decode of n tokens: (a + b (n - 1)) seconds for each token of
// context, with a, b >= 0. The KV memory is read once for any n (a), and computed with n times (b).
//
// Learned from pairs of successive decodes of the same n where the second has the shorter context,
// because a new request began. Pairs are weighted by the square of the difference. Within a
// request, the effects of a growing context and a heating machine cannot be separated.
class ContextSlope {
 public:
    void observe(int n, int n_context, double seconds);

    double seconds(int n, int n_context) const {
        return (base_ + per_token_ * (n - 1)) * n_context;
    }

    double base() const { return base_; }
    double per_token() const { return per_token_; }
    // Restarts from a (base) and b (per_token) of an earlier session.
    void set(double base, double per_token);

 private:
    // The last decode of one n, and sums over its pairs: of dc^2 and of dc * ds, where dc and ds
    // are the differences in context and seconds.
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
    // Prior values of fit().
    double prior_base_ = 0;
    double prior_per_token_ = 0;
};

}  // namespace specllama
