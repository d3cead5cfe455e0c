#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// Which of the tokens at hand are verified in one decode, of one or of many sequences: rows in the
// order of what they are expected to gain, as many as pay by what a decode of so many rows takes.
// Every number of them is looked at, from none: that time is a staircase, so the first row that
// does not pay says nothing about the next.
//
// A row comes after another one, without which it is worth nothing, and is never worth more than
// that. So for each number of rows the best are the first in this order, whatever comes after what:
// a chain, or a tree (Chen et al., "Sequoia", 2024, section 3.1).
//
// Beyond kMaxSpecLength + 1 rows, of which no more is learned, each further one takes as long as
// any other; so there the first that does not pay ends it.
//
// Pure. Kept between rounds so that none allocates.
class Allotment {
 public:
    // [n]: what a decode of n rows counts as taking, in seconds, for all up to n_most(): a straight
    // line beyond kMaxSpecLength + 1.
    using Prices = std::span<const double>;

    static constexpr int kCommitted = -1;  // predecessor of a row behind the committed tokens

    void clear();

    // A token that could be verified.
    struct Row {
        int sequence;
        int number;     // in the sequence, from 0
        double tokens;  // to expect of it
        double gain;    // seconds that they are worth
    };

    // The next sequence, with so many rows that are decoded in any case. Its drafts may add `stake`
    // seconds to the decode, and of its other rows `most` are verified at most. Of sequences that
    // lie apart in the memory `place` is where; they come in the order of their places.
    void add_sequence(int n_rows, double stake, int place = 0, int most = kMaxSpecLength);

    // A row of the sequence that was added last: which row it comes after, the tokens to expect of
    // it, and the seconds they are worth. Returns a number for those that come after it.
    int add_row(int predecessor, double tokens, double gain) {
        if (predecessor != kCommitted) gain = std::min(gain, rows_[predecessor].gain);
        const auto sequence = static_cast<int>(participants_.size()) - 1;
        rows_.push_back({sequence, participants_.back().longest++, tokens, gain});
        return static_cast<int>(rows_.size()) - 1;
    }

    // Chooses the rows, and with them all that follows; once, until clear().
    void allot(Prices prices);
    // The same where only neighbours in the memory with as many rows each are decoded at once.
    // Then those that draft verify as many rows each, and every change from one place to the next
    // is the beginning of another decode.
    void allot_alike(Prices prices);

    // The rows that are verified, each behind its predecessor.
    const std::vector<Row>& chosen() const { return chosen_; }
    // What the decode counts as taking, in seconds.
    double seconds() const { return seconds_; }

    // Rows that there may be at most.
    int n_most() const { return n_certain_ + static_cast<int>(rows_.size()); }

 private:
    struct Participant {
        int n_rows;
        double stake;
        int place;
        int most;
        std::size_t first_row;
        int longest = 0;  // rows that it may have
        int n_chosen = 0;
    };

    int n_certain_ = 0;  // rows that are decoded in any case
    std::vector<Participant> participants_;
    std::vector<Row> rows_;
    std::vector<Row> chosen_;
    double seconds_ = 0;
};

}  // namespace specllama
