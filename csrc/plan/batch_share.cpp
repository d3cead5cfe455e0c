#include "plan/batch_share.h"

#include <algorithm>
#include <functional>

namespace specllama {

void BatchShare::start(std::span<const Share> shares) {
    lengths_.assign(shares.size(), 0);
    rows_.clear();
    longest_ = n_tokens_ = 0;
    tokens_ = best_ = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        const Share& share = shares[i];
        lengths_[i] = share.all ? share.longest() : 0;
        n_tokens_ += share.n_pending + lengths_[i];
        tokens_ += share.tokens[lengths_[i]];
        longest_ = std::max(longest_, share.longest());
        for (int g = lengths_[i] + 1; g <= share.longest(); ++g)
            rows_.push_back({static_cast<int>(i), share.tokens[g] - share.tokens[g - 1]});
    }
    // A token is never likelier than the one before it, which so comes first.
    std::ranges::sort(rows_, std::ranges::greater(), &Row::gain);
}

bool BatchShare::improves(double tokens, double seconds) {
    if (tokens <= best_ * seconds) return false;
    best_ = tokens / seconds;
    return true;
}

void BatchShare::count_alike(std::span<const Share> shares, int g) {
    widths_.clear();
    tokens_ = 0;
    for (const Share& share : shares) {
        const int n_draft = share.all ? share.longest() : share.longest() >= g ? g : 0;
        const auto n = static_cast<std::size_t>(share.n_pending + n_draft);
        if (widths_.size() <= n) widths_.resize(n + 1);
        widths_[n] += static_cast<int>(n);
        tokens_ += share.tokens[n_draft];
    }
}

}  // namespace specllama
