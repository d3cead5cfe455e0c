#include "plan/batch_share.h"

#include <algorithm>

namespace specllama {

void BatchShare::settle(std::span<const Share> shares, double spent, bool alike,
                        const DecodeSeconds& seconds) {
    if (alike)
        settle_alike(shares, spent, seconds);
    else
        settle_together(shares, spent, seconds);
}

void BatchShare::settle_together(std::span<const Share> shares, double spent,
                                 const DecodeSeconds& seconds) {
    rows_.clear();
    lengths_.clear();
    int n = 0;
    double tokens = 0;
    for (const Share& share : shares) {
        const int length = share.length(0);
        for (int g = length + 1; g <= share.longest(); ++g)
            rows_.push_back(
                {static_cast<int>(lengths_.size()), share.tokens[g] - share.tokens[g - 1]});
        lengths_.push_back(length);
        n += share.n_pending + length;
        tokens += share.tokens[length];
    }
    // A token is never likelier than the one before it, which so comes first.
    std::ranges::sort(rows_, std::ranges::greater(), &Row::gain);
    double best = tokens / (spent + seconds(n));
    std::size_t n_best = 0;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        tokens += rows_[r].gain;
        const double speed = tokens / (spent + seconds(++n));
        if (speed <= best) continue;
        best = speed;
        n_best = r + 1;
    }
    for (const Row& row : std::span(rows_).first(n_best)) ++lengths_[row.sequence];
}

void BatchShare::settle_alike(std::span<const Share> shares, double spent,
                              const DecodeSeconds& seconds) {
    int longest = 0;
    for (const Share& share : shares) longest = std::max(longest, share.longest());
    double best = 0;
    int best_length = 0;
    for (int g = 0; g <= longest; ++g) {
        double tokens = 0;
        double total = spent;
        int n_decoded = 0;
        for (std::size_t i = 0; i < shares.size(); ++i) {
            const Share& share = shares[i];
            const int n = share.width(g);
            n_decoded += n;
            tokens += share.tokens[share.length(g)];
            const bool last = i + 1 == shares.size();
            if (!last && shares[i + 1].place == share.place + 1 && shares[i + 1].width(g) == n)
                continue;
            total += seconds(n_decoded);
            n_decoded = 0;
        }
        if (tokens <= best * total) continue;
        best = tokens / total;
        best_length = g;
    }
    lengths_.clear();
    for (const Share& share : shares) lengths_.push_back(share.length(best_length));
}

}  // namespace specllama
