#include "beam/foresight.h"

#include <cmath>
#include <cstddef>

namespace specllama {

namespace {

// Factor by which earlier observations count less with each further one.
constexpr double kMemory = 0.95;

// Factor by which decoding ahead must be expected to be faster: the best of several estimates is
// too good on average.
constexpr double kMargin = 1.05;

}  // namespace

int Foresight::choose(std::span<const int> rows, const std::function<double(int)>& seconds) const {
    int best = 0;
    double best_speed = kMargin / seconds(rows[0]);
    double steps = 1;
    for (std::size_t g = 1; g < rows.size(); ++g) {
        steps += std::pow(rate(), g);
        const double speed = steps / seconds(rows[g]);
        if (speed <= best_speed) continue;
        best = static_cast<int>(g);
        best_speed = speed;
    }
    return best;
}

void Foresight::learn(int n_seen, int n_right) {
    n_seen_ = kMemory * n_seen_ + n_seen;
    n_right_ = kMemory * n_right_ + n_right;
}

}  // namespace specllama
