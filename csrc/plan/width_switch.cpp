#include "plan/width_switch.h"

#include <algorithm>
#include <limits>

#include "plan/constants.h"

namespace specllama {

void WidthSwitch::note(int n) {
    const int width = n <= kMaxSpecLength + 1 ? n : 0;
    n_same_ = width > 0 && width == last_ ? n_same_ + 1 : 1;
    last_ = width;
}

void WidthSwitch::learn(std::span<const double> tokens, int n_sequences, int n_plain,
                        std::span<const double> steady) {
    const std::size_t n = std::min<std::size_t>(n_sequences, tokens.size() - 1);
    expected_ += tuning::kRegimeEnd * (tokens[n] / n_sequences - expected_);
    const bool pays = (1 + expected_) * steady[n_plain] > steady[n_plain + n_sequences];
    n_at_base_ = pays ? n_sequences : 0;
}

double WidthSwitch::unpadded(std::span<const double> steady, int n, int n_plain) const {
    const int n_changes = (n != last_) + (n != n_plain + n_at_base_);
    return steady[n] + n_changes * seconds_;
}

double WidthSwitch::padded(std::span<const double> steady, int n, int n_plain) const {
    if (!pads_ || seconds_ == 0 || n >= last_) return std::numeric_limits<double>::infinity();
    return steady[last_] + (last_ != n_plain + n_at_base_) * seconds_;
}

std::span<const double> WidthSwitch::decode_costs(std::span<const double> steady,
                                                  int n_plain) const {
    if (seconds_ == 0) return steady;
    costs_.resize(steady.size());
    for (int n = 0; n < std::ssize(steady); ++n)
        costs_[n] = std::min(unpadded(steady, n, n_plain), padded(steady, n, n_plain));
    return costs_;
}

int WidthSwitch::width(std::span<const double> steady, int n, int n_plain) const {
    return padded(steady, n, n_plain) < unpadded(steady, n, n_plain) ? last_ : n;
}

}  // namespace specllama
