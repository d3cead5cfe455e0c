#include "plan/allotment.h"

#include <algorithm>
#include <limits>

namespace specllama {

void Allotment::clear() {
    participants_.clear();
    rows_.clear();
}

int Allotment::add_sequence(int n_rows, double tokens, double stake, int place, int most) {
    participants_.push_back({n_rows, tokens, stake, place, most, rows_.size()});
    return static_cast<int>(participants_.size()) - 1;
}

int Allotment::add_row(int predecessor, double tokens, double gain) {
    const int sequence = static_cast<int>(participants_.size()) - 1;
    if (predecessor != kCommitted) gain = std::min(gain, rows_[predecessor].gain);
    const auto row = static_cast<int>(rows_.size());
    rows_.push_back(
        {sequence, row - static_cast<int>(participants_.back().first_row), tokens, gain});
    return row;
}

void Allotment::drop_sequence() {
    rows_.resize(participants_.back().first_row);
    participants_.pop_back();
}

int Allotment::n_certain() const {
    int n = 0;
    for (const Participant& one : participants_) n += one.n_rows;
    return n;
}

void Allotment::allot(const Price& price) {
    // What comes after another row was added after it, and stays there.
    std::ranges::stable_sort(rows_, std::ranges::greater(), &Row::gain);
    lengths_.assign(participants_.size(), 0);
    std::erase_if(rows_, [&](const Row& row) {
        return ++lengths_[row.sequence] > participants_[row.sequence].most;
    });
    lengths_.assign(participants_.size(), 0);
    saved_by_.assign(1, 0);
    n_best_ = 0;
    int n = n_certain();
    const double plain = price(n);
    double gain = 0;
    double stake = 0;
    for (const Row& row : rows_) {
        gain += row.gain;
        if (lengths_[row.sequence]++ == 0) stake += participants_[row.sequence].stake;
        const double extra = price(++n) - plain;
        saved_by_.push_back(extra <= stake ? gain - extra
                                           : -std::numeric_limits<double>::infinity());
        if (saved_by_.back() > saved_by_[n_best_]) n_best_ = n_candidates();
    }
    take(n_best_, price);
}

void Allotment::take(int k, const Price& price) {
    start();
    for (const Row& row : std::span(rows_).first(k)) add(row);
    seconds_ = price(n_certain() + k);
}

void Allotment::start() {
    lengths_.assign(participants_.size(), 0);
    gains_.assign(participants_.size(), 0);
    chosen_.clear();
    tokens_.clear();
    for (const Participant& one : participants_) tokens_.push_back(one.tokens);
}

void Allotment::add(const Row& row) {
    ++lengths_[row.sequence];
    chosen_.push_back({row.sequence, row.number});
    tokens_[row.sequence] += row.tokens;
    gains_[row.sequence] += row.gain;
}

void Allotment::allot_alike(const Price& price) {
    const auto longest = [&](std::size_t i) {
        const bool last = i + 1 == participants_.size();
        return static_cast<int>((last ? rows_.size() : participants_[i + 1].first_row) -
                                participants_[i].first_row);
    };
    const auto length = [&](std::size_t i, int g) { return longest(i) < g ? 0 : g; };
    const auto seconds = [&](int g) {
        double total = 0;
        int n = 0;
        for (std::size_t i = 0; i < participants_.size(); ++i) {
            const Participant& one = participants_[i];
            const int width = one.n_rows + length(i, g);
            n += width;
            const bool last = i + 1 == participants_.size();
            if (!last && participants_[i + 1].place == one.place + 1 &&
                participants_[i + 1].n_rows + length(i + 1, g) == width)
                continue;
            total += price(n);
            n = 0;
        }
        return total;
    };
    int most = 0;
    for (std::size_t i = 0; i < participants_.size(); ++i) most = std::max(most, longest(i));
    const double plain = seconds(0);
    double most_saved = 0;
    int best = 0;
    for (int g = 1; g <= most; ++g) {
        double gain = 0;
        double stake = 0;
        for (std::size_t i = 0; i < participants_.size(); ++i) {
            if (length(i, g) == 0) continue;
            stake += participants_[i].stake;
            for (int t = 0; t < g; ++t) gain += rows_[participants_[i].first_row + t].gain;
        }
        const double extra = seconds(g) - plain;
        if (extra > stake || gain - extra <= most_saved) continue;
        most_saved = gain - extra;
        best = g;
    }
    saved_by_.assign(1, 0);
    n_best_ = 0;
    start();
    for (std::size_t i = 0; i < participants_.size(); ++i)
        for (int t = 0; t < length(i, best); ++t) add(rows_[participants_[i].first_row + t]);
    seconds_ = seconds(best);
}

}  // namespace specllama
