#pragma once

#include <functional>
#include <span>

namespace specllama {

// How far ahead of a beam search it pays to decode: learns how often a step was foreseen (see
// Outlook), and takes the number of levels that gives the most steps per second,
//
//     (1 + sum over i <= g of rate^i) / seconds(rows of the levels up to g),
//
// which is Leviathan et al. 2023, theorem 3.8, with measured costs and a step of all beams for a
// token. Pure.
class Foresight {
 public:
    // rows[g]: of a decode with levels 0 to g. Returns g; 0: nothing is decoded ahead.
    int choose(std::span<const int> rows, const std::function<double(int)>& seconds) const;

    // Of n_seen steps that were taken and looked ahead to, the first n_right were foreseen.
    void learn(int n_seen, int n_right);

    double rate() const { return (n_right_ + 1) / (n_seen_ + 2); }

 private:
    double n_seen_ = 0;
    double n_right_ = 0;
};

}  // namespace specllama
