#pragma once

#include <span>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// The cost of a change of width (number of rows) between two decodes.
//
// For each new width llama.cpp builds a new graph. On a GPU it starts the kernels of the first
// decode of a width one by one, records them during the second decode, and starts them all at once
// from the third on. For a small model on a fast GPU, this takes longer than the computation. So
// widths should change rarely, and a decode can be padded with unused rows to the width of the
// previous one.
//
// Widths return to a base width: the width without drafts, or with one drafted row for each
// sequence, whichever is faster by the recently expected tokens.
class WidthSwitch {
 public:
    // Decodes that a change makes slower.
    static constexpr int kUnsteady = 2;

    // Seconds that a change costs, over all these decodes; 0 on CPUs.
    void set_seconds(double seconds) { seconds_ = seconds; }
    double seconds() const { return seconds_; }
    // Whether decodes can be padded.
    void set_padding(bool possible) { pads_ = possible; }

    // Must be called after each decode of n rows.
    void note(int n);
    // Width of the last decode; 0: none, or wider than kMaxSpecLength + 1.
    int last() const { return last_; }
    // Whether the last decode was not slowed by a change.
    bool steady() const { return seconds_ == 0 || n_same_ > kUnsteady; }

    // Learns from the drafts of a round of n_sequences, with n_plain rows that are not drafted.
    // tokens[k]: expected tokens of the first k drafted rows. steady[n]: seconds of a decode of n
    // rows after others of the same width, for n up to n_plain + n_sequences.
    void learn(std::span<const double> tokens, int n_sequences, int n_plain,
               std::span<const double> steady);

    // [n]: seconds to assume for a decode that needs n rows, of which n_plain are not drafted,
    // including the return to the base width. steady: as above, for n up to last() at least. Valid
    // until the next call.
    std::span<const double> decode_costs(std::span<const double> steady, int n_plain) const;
    // The width at which n rows are decoded at that cost: n or last().
    int width(std::span<const double> steady, int n, int n_plain) const;

 private:
    double unpadded(std::span<const double> steady, int n, int n_plain) const;
    double padded(std::span<const double> steady, int n, int n_plain) const;

    double seconds_ = 0;
    bool pads_ = false;
    int last_ = 0;
    int n_same_ = 0;       // decodes of that width in a row
    double expected_ = 0;  // tokens per sequence with one drafted row each
    int n_at_base_ = 0;    // drafted rows of the base width
    mutable std::vector<double> costs_;
};

}  // namespace specllama
