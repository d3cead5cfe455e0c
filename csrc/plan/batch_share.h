#pragma once

#include <functional>
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
    // Where it is in the memory.
    int place = 0;

    int longest() const { return static_cast<int>(tokens.size()) - 1; }
    // Of its draft, where those that draft verify g tokens each.
    int length(int g) const { return all ? longest() : longest() >= g ? g : 0; }
    // Its tokens in the decode then.
    int width(int g) const { return n_pending + length(g); }
};

// How several sequences' drafts share a decode: so that the most tokens per second are to be
// expected of all together. Each draft token goes by the chance that it and those before it are
// right; the likeliest come first, as many of all as pay by what a decode of so many tokens takes.
// So drafts shrink by themselves, down to none, the more sequences there are.
//
// Pure. Kept between rounds so that none allocates.
class BatchShare {
 public:
    // Seconds of a decode of n tokens.
    using DecodeSeconds = std::function<double(int n)>;

    // Settles lengths()[i] for each sequence. spent: seconds that went into the drafts.
    //
    // alike: only neighbours in the memory with as many tokens each are decoded at once. Then those
    // that draft do so with the same length, and every change of the length from one place to the
    // next is the beginning of another decode. The sequences come in the order of their places.
    void settle(std::span<const Share> shares, double spent, bool alike,
                const DecodeSeconds& seconds);

    const std::vector<int>& lengths() const { return lengths_; }

 private:
    // A token of a draft: whose, and what it is expected to bring.
    struct Row {
        int sequence;
        double gain;
    };

    void settle_together(std::span<const Share> shares, double spent, const DecodeSeconds& seconds);
    void settle_alike(std::span<const Share> shares, double spent, const DecodeSeconds& seconds);

    std::vector<Row> rows_;  // the likeliest first
    std::vector<int> lengths_;
};

}  // namespace specllama
