#pragma once

#include <algorithm>

namespace specllama {

// How a request that drafting has made slower counts what is likely: as a power of it. So what is
// all but sure counts nearly as before, and what is in doubt hardly at all.
struct Caution {
    double exponent = 1;  // 1: as it is

    // Makes of a chance what it counts as. T: a number, or a vector of them. Between whole
    // exponents it goes in a straight line: that is fast, and the same on every machine. What is
    // next to nothing is nothing, since processors are slow with numbers that small.
    template <typename T>
    void weaken(T& chance) const {
        if (exponent == 1) return;
        constexpr float kNothing = 1e-18F;
        const auto whole = static_cast<int>(std::min(kMost, exponent));
        const auto part = static_cast<float>(std::min(kMost, exponent) - whole);
        T power = 1 - part * (1 - chance);
        for (int bits = whole; bits > 0; bits >>= 1) {
            chance = chance < kNothing ? chance * 0 : chance;
            power = power < kNothing ? power * 0 : power;
            if (bits & 1) power = power * chance;
            chance = chance * chance;
        }
        chance = power;
    }

 private:
    static constexpr double kMost = 1e6;
};

}  // namespace specllama
