#pragma once

#include <array>

#include "specllama/types.h"

namespace specllama {

// What the context adds to the time of a decode: seconds per token of context for a decode of n
// tokens, as a + b (n - 1), neither negative. Reading the KV memory costs the same for any n (a);
// computing with it is done n times (b).
//
// Learned from pairs of decodes of the same n, one after the other, of which the second has the
// shorter context: the steps from one request to the next, weighted by their length. Within a
// request the context grows as slowly as a machine gets hot, and nobody could tell the two apart.
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
    // The last decode of one n, and sums over the pairs: of squared steps of the context, and of
    // those times the steps of the seconds.
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
    // What fit() falls back on where little was seen.
    double prior_base_ = 0;
    double prior_per_token_ = 0;
};

}  // namespace specllama
