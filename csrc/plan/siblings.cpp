#include "plan/siblings.h"

#include <algorithm>

#include "plan/constants.h"

namespace specllama {

Siblings::Siblings() {
    for (auto& rates : rates_)
        for (std::size_t i = 0; i < rates.size(); ++i) {
            const double believed = (static_cast<double>(i % kParts) + 0.5) / kParts;
            const std::size_t rank = i / kParts % kRanks;
            rates[i] = tuning::kSiblingPrior * believed / static_cast<double>(1 + rank);
        }
}

std::size_t Siblings::at(Source source, int rank, double believed) {
    const std::size_t of_rank = std::clamp(rank - 1, 0, static_cast<int>(kRanks) - 1);
    const auto part = static_cast<std::size_t>(std::clamp(believed, 0.0, 1.0) * kParts);
    return (static_cast<std::size_t>(source) * kRanks + of_rank) * kParts +
           std::min(part, kParts - 1);
}

double Siblings::rate(int temperature, Source source, int rank, double believed) const {
    return rates_[temperature][at(source, rank, believed)];
}

void Siblings::observe(int temperature, Source source, int rank, double believed, bool right) {
    double& rate = rates_[temperature][at(source, rank, believed)];
    rate += ((right ? 1.0 : 0.0) - rate) / tuning::kSiblingWindow;
}

}  // namespace specllama
