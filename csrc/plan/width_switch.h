#pragma once

#include <span>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// What it costs that a decode has another width, another number of rows, than the one before.
//
// For each new width llama.cpp builds a new graph. On a GPU it starts the kernels of the first
// decode of a width one by one, and records them during the second; from the third on it starts
// them all at once. A small model on a fast GPU computes for a shorter time than that takes. So
// widths should change rarely, and a decode can be padded: filled up to the width of the one before
// with rows that nobody asks for.
//
// Widths come back to a base width: that without drafts, or one drafted row more for each sequence,
// whichever makes tokens faster by what drafts have promised of late.
class WidthSwitch {
 public:
    // Decodes that a change makes dearer.
    static constexpr int kUnsteady = 2;

    // Seconds that a change costs, these decodes together; 0: nothing, as on processors.
    void set_seconds(double seconds) { seconds_ = seconds; }
    double seconds() const { return seconds_; }
    // Whether decodes can be padded.
    void set_padding(bool possible) { pads_ = possible; }

    // To be called after each decode, of n rows.
    void note(int n);
    // Width of the last decode; 0: there was none, or it was wider than any that is padded.
    int last() const { return last_; }
    // Whether the last decode took no longer because of a change.
    bool steady() const { return seconds_ == 0 || n_same_ > kUnsteady; }

    // Learns from the drafts of a round of n_sequences, of which n_plain rows are no drafts.
    // tokens[k]: expected of the first k drafted rows. steady[n]: seconds of a decode of n rows
    // after others of as many, for n up to n_plain + n_sequences.
    void learn(std::span<const double> tokens, int n_sequences, int n_plain,
               std::span<const double> steady);

    // [n]: seconds to reckon with for a decode that needs n rows, n_plain of which are no drafts,
    // the way back to the base width included. steady: as above, for n up to last() at least. Valid
    // until the next call.
    std::span<const double> decode_costs(std::span<const double> steady, int n_plain) const;
    // The width at which n rows are decoded for that cost: n or last().
    int width(std::span<const double> steady, int n, int n_plain) const;

 private:
    double unpadded(std::span<const double> steady, int n, int n_plain) const;
    double padded(std::span<const double> steady, int n, int n_plain) const;

    double seconds_ = 0;
    bool pads_ = false;
    int last_ = 0;
    int n_same_ = 0;       // decodes of that width in a row
    double expected_ = 0;  // tokens of one drafted row for each sequence, by sequence
    int n_at_base_ = 0;    // drafted rows of the base width
    mutable std::vector<double> costs_;
};

}  // namespace specllama
