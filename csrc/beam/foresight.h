#pragma once

#include <functional>
#include <span>

namespace specllama {

// Decides how many levels ahead a beam search should decode. It learns how often a step was
// foreseen (see Outlook), and chooses the number of levels g that gives the most steps per second,
//
//     (1 + sum over i <= g of rate^i) / seconds(rows of the levels up to g).
//
// This is Leviathan et al. 2023, theorem 3.8, with measured costs, and with a step of all beams in
// place of a token. Pure.
class Foresight {
 public:
    // rows[g]: rows of a decode with levels 0 to g. seconds(n): time of a decode of n rows. Returns
    // g; 0: nothing is decoded ahead.
    int choose(std::span<const int> rows, const std::function<double(int)>& seconds) const;

    // n_seen steps were taken that had been looked ahead to; the first n_right of them were
    // foreseen.
    void learn(int n_seen, int n_right);

 private:
    double rate() const { return (n_right_ + 1) / (n_seen_ + 2); }

    double n_seen_ = 0;
    double n_right_ = 0;
};

}  // namespace specllama
