#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// Chooses the drafted tokens of one or many sequences that are verified in one decode. Each token
// is a row. Rows are sorted by expected gain, and the number of rows with the greatest difference
// of gain and cost is chosen. Every number is tried, since costs rise in steps: the next row may
// pay even if this one does not.
//
// A row is useless without its predecessor, and never gains more than it. So the first rows in this
// order are the best set of every size, for chains and trees (Chen et al., "Sequoia", 2024, section
// 3.1).
//
// Beyond kMaxSpecLength + 1 rows, decode costs are linear, so the search ends there at the first
// row that does not pay.
//
// Reused between rounds, so that a round does not allocate.
class VerificationBatch {
 public:
    // [n]: seconds to assume for a decode of n rows, for n up to n_most(); linear beyond
    // kMaxSpecLength + 1.
    using DecodeCosts = std::span<const double>;

    static constexpr int kCommitted = -1;  // predecessor of a row that follows the committed text
    static constexpr int kAnyNumber = std::numeric_limits<int>::max();

    void clear();

    // A candidate token.
    struct Row {
        int sequence;
        int number;     // in the sequence, from 0
        double tokens;  // expected: the probability that it is accepted
        double gain;    // their value [s]
    };

    // Adds a sequence with n_rows rows that are always decoded. Its drafts may add at most
    // `draft_budget` seconds to the decode, and at most `most` of its drafted rows are verified.
    // stream: stream of the sequence in a memory with separate streams. Sequences must be added in
    // the order of streams.
    void add_sequence(int n_rows, double draft_budget, int stream = 0, int most = kMaxSpecLength);

    // Adds a row to the last added sequence. Returns its number, which later rows use as their
    // predecessor.
    int add_row(int predecessor, double tokens, double gain) {
        if (predecessor != kCommitted) gain = std::min(gain, rows_[predecessor].gain);
        const auto sequence = static_cast<int>(participants_.size()) - 1;
        rows_.push_back({sequence, participants_.back().longest++, tokens, gain});
        return static_cast<int>(rows_.size()) - 1;
    }

    // Chooses the rows. Must be called once before the next clear(). most_rows: most rows of the
    // decode, if it has fewer without drafts.
    void select(DecodeCosts decode_costs, int most_rows = kAnyNumber);
    // The same for a memory with separate streams, where only neighbouring streams with equally
    // many rows are decoded together. All sequences that draft then verify the same number of rows,
    // and another decode begins where the number changes between streams.
    void select_per_stream(DecodeCosts decode_costs);

    // The chosen rows, each after its predecessor.
    const std::vector<Row>& chosen() const { return chosen_; }
    // Seconds to assume for the chosen decode.
    double seconds() const { return seconds_; }

    // [k]: expected tokens of the first k rows in the order of gain, for all numbers tried. Only
    // after select().
    std::span<const double> tokens() const { return tokens_; }

    // Number of rows if all are verified.
    int n_most() const { return n_certain_ + static_cast<int>(rows_.size()); }

 private:
    struct Participant {
        int n_rows;
        double draft_budget;
        int stream;
        int most;
        std::size_t first_row;
        int longest = 0;  // added drafted rows
        int n_chosen = 0;
    };

    int n_certain_ = 0;  // rows that are always decoded
    std::vector<Participant> participants_;
    std::vector<Row> rows_;
    std::vector<Row> chosen_;
    std::vector<double> tokens_;
    double seconds_ = 0;
};

}  // namespace specllama
