#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// Chooses which drafted tokens of one or of many sequences are verified in one decode. The tokens
// are rows; they are taken in the order of their expected gain, and that number of rows is chosen
// whose gain exceeds its cost by most. Every number is tried, from none on: costs are a
// staircase, so that one row does not pay says nothing about the next.
//
// A row has a predecessor, without which it is worth nothing, and never gains more than that. So
// the first rows in this order are the best set of every size, for chains and for trees (Chen et
// al., "Sequoia", 2024, section 3.1).
//
// Beyond kMaxSpecLength + 1 rows decode costs are a straight line, so there the search ends with
// the first row that does not pay.
//
// Pure. Kept between rounds, so that a round does not allocate.
class VerificationBatch {
 public:
    // [n]: seconds to reckon with for a decode of n rows, for n up to n_most(); a straight line
    // beyond kMaxSpecLength + 1.
    using DecodeCosts = std::span<const double>;

    static constexpr int kCommitted = -1;  // predecessor of a row that follows the committed text
    static constexpr int kAnyNumber = std::numeric_limits<int>::max();

    void clear();

    // A token that could be verified.
    struct Row {
        int sequence;
        int number;     // in the sequence, from 0
        double tokens;  // expected: the probability that it is accepted
        double gain;    // seconds that these are worth
    };

    // Adds a sequence with n_rows rows that are decoded in any case. Its drafts may add at most
    // `draft_budget` seconds to the decode, and at most `most` of its drafted rows are verified.
    // stream: of the sequence, where each has one; sequences are added in the order of streams.
    void add_sequence(int n_rows, double draft_budget, int stream = 0, int most = kMaxSpecLength);

    // Adds a row to the sequence that was added last. Returns its number, by which rows that follow
    // it name their predecessor.
    int add_row(int predecessor, double tokens, double gain) {
        if (predecessor != kCommitted) gain = std::min(gain, rows_[predecessor].gain);
        const auto sequence = static_cast<int>(participants_.size()) - 1;
        rows_.push_back({sequence, participants_.back().longest++, tokens, gain});
        return static_cast<int>(rows_.size()) - 1;
    }

    // Chooses the rows; to be called once before the next clear(). most_rows: those of the decode,
    // unless it has more in any case.
    void select(DecodeCosts decode_costs, int most_rows = kAnyNumber);
    // The same for a split memory, where only neighbours with equally many rows are decoded at
    // once. All sequences that draft then verify the same number of rows, and wherever the number
    // changes from one stream to the next, another decode begins.
    void select_per_stream(DecodeCosts decode_costs);

    // The rows that are verified, each behind its predecessor.
    const std::vector<Row>& chosen() const { return chosen_; }
    // Seconds to reckon with for the decode that was chosen.
    double seconds() const { return seconds_; }

    // [k]: expected tokens of the first k rows in the order of their gain, as far as they were
    // looked at. After select() only.
    std::span<const double> tokens() const { return tokens_; }

    // Rows if all were verified.
    int n_most() const { return n_certain_ + static_cast<int>(rows_.size()); }

 private:
    struct Participant {
        int n_rows;
        double draft_budget;
        int stream;
        int most;
        std::size_t first_row;
        int longest = 0;  // drafted rows that were added
        int n_chosen = 0;
    };

    int n_certain_ = 0;  // rows that are decoded in any case
    std::vector<Participant> participants_;
    std::vector<Row> rows_;
    std::vector<Row> chosen_;
    std::vector<double> tokens_;
    double seconds_ = 0;
};

}  // namespace specllama
