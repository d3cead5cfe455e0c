#include "plan/width_change.h"

#include <algorithm>
#include <limits>

#include "plan/constants.h"

namespace specllama {

void WidthChange::note(int n) {
    const int width = n <= kMaxSpecLength + 1 ? n : 0;
    n_same_ = width > 0 && width == last_ ? n_same_ + 1 : 1;
    last_ = width;
}

void WidthChange::learn(std::span<const double> tokens, int n_sequences, int n_plain,
                        std::span<const double> settled) {
    const std::size_t n = std::min<std::size_t>(n_sequences, tokens.size() - 1);
    promised_ += tuning::kPhaseEnd * (tokens[n] / n_sequences - promised_);
    const bool pays = (1 + promised_) * settled[n_plain] > settled[n_plain + n_sequences];
    n_at_home_ = pays ? n_sequences : 0;
}

double WidthChange::unpadded(std::span<const double> settled, int n, int n_plain) const {
    const int n_changes = (n != last_) + (n != n_plain + n_at_home_);
    return settled[n] + n_changes * seconds_;
}

double WidthChange::padded(std::span<const double> settled, int n, int n_plain) const {
    if (!pads_ || seconds_ == 0 || n >= last_) return std::numeric_limits<double>::infinity();
    return settled[last_] + (last_ != n_plain + n_at_home_) * seconds_;
}

std::span<const double> WidthChange::prices(std::span<const double> settled, int n_plain) const {
    if (seconds_ == 0) return settled;
    prices_.resize(settled.size());
    for (int n = 0; n < std::ssize(settled); ++n)
        prices_[n] = std::min(unpadded(settled, n, n_plain), padded(settled, n, n_plain));
    return prices_;
}

int WidthChange::width(std::span<const double> settled, int n, int n_plain) const {
    return padded(settled, n, n_plain) < unpadded(settled, n, n_plain) ? last_ : n;
}

}  // namespace specllama
