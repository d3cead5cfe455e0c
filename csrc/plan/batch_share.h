#pragma once

#include <span>
#include <vector>

namespace specllama {

// A sequence that has a part in a decode.
struct Share {
    // Its tokens that are decoded in any case.
    int n_pending = 1;
    // [g]: tokens to expect if g tokens of its draft are verified; grows ever more slowly.
    std::vector<double> tokens = {1};
    // Whether all of its draft must be verified, whatever it is.
    bool all = false;

    int longest() const { return static_cast<int>(tokens.size()) - 1; }
};

// How several sequences' drafts share a decode: so that the most tokens per second are to be
// expected of all together. Each draft token goes by the chance that it and those before it are
// right; the likeliest come first, as many of all as pay by what a decode of so many tokens takes.
// So drafts shrink by themselves, down to none, the more sequences there are.
//
// Pure. Kept between rounds so that none allocates.
class BatchShare {
 public:
    // Settles lengths()[i] for each sequence. seconds(n): of a decode of n tokens. spent: seconds
    // that went into the drafts.
    //
    // alike: only sequences with as many tokens each are decoded at once. Then those that draft do
    // so with the same length, the others in a decode of their own.
    template <typename DecodeSeconds>
    void settle(std::span<const Share> shares, double spent, bool alike, DecodeSeconds seconds) {
        start(shares);
        alike ? settle_alike(shares, spent, seconds) : settle_together(spent, seconds);
    }

    const std::vector<int>& lengths() const { return lengths_; }

 private:
    // A token of a draft: whose, and what it is expected to bring.
    struct Row {
        int sequence;
        double gain;
    };

    void start(std::span<const Share> shares);
    // Whether this many tokens in this time are more per second than was best so far.
    bool improves(double tokens, double seconds);
    // Adds up, for drafts of g tokens and none, what is decoded at once: sequences and tokens.
    void count_alike(std::span<const Share> shares, int g);

    template <typename DecodeSeconds>
    void settle_together(double spent, DecodeSeconds seconds) {
        double tokens = tokens_;
        std::size_t n_best = 0;
        improves(tokens, spent + seconds(n_tokens_));
        for (std::size_t n = 1; n <= rows_.size(); ++n) {
            tokens += rows_[n - 1].gain;
            if (improves(tokens, spent + seconds(n_tokens_ + static_cast<int>(n)))) n_best = n;
        }
        for (std::size_t n = 0; n < n_best; ++n) ++lengths_[rows_[n].sequence];
    }

    template <typename DecodeSeconds>
    void settle_alike(std::span<const Share> shares, double spent, DecodeSeconds seconds) {
        int best = 0;
        for (int g = 0; g <= longest_; ++g) {
            count_alike(shares, g);
            double total = spent;
            for (const int n : widths_)
                if (n > 0) total += seconds(n);
            if (improves(tokens_, total)) best = g;
        }
        for (std::size_t i = 0; i < shares.size(); ++i)
            if (!shares[i].all) lengths_[i] = shares[i].longest() >= best ? best : 0;
    }

    std::vector<Row> rows_;    // the likeliest first
    std::vector<int> widths_;  // [n]: tokens of all sequences that have n each
    std::vector<int> lengths_;
    int longest_ = 0;
    int n_tokens_ = 0;   // decoded in any case
    double tokens_ = 0;  // to expect of these
    double best_ = 0;    // tokens per second
};

}  // namespace specllama
