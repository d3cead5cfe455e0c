#pragma once

#include <array>
#include <cstddef>

#include "specllama/source.h"

namespace specllama {

// How often a guess is right where those before it at its position are wrong, by its source, its
// rank and what is believed of it: running rates, for each class of temperature, shared by all
// requests.
class Siblings {
 public:
    Siblings();

    // temperature: its class, see Phase. rank: guesses before it, 1 or more. believed: 0 to 1.
    double rate(int temperature, Source source, int rank, double believed) const;
    void observe(int temperature, Source source, int rank, double believed, bool right);

 private:
    static constexpr std::size_t kRanks = 3;  // 1, 2, more
    static constexpr std::size_t kParts = 5;  // of what is believed

    static std::size_t at(Source source, int rank, double believed);

    std::array<std::array<double, kSourceNames.size() * kRanks * kParts>, 4>
        rates_{};  // [temperature]
};

}  // namespace specllama
