#include "plan/allotment.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <tuple>

namespace specllama {

void Allotment::clear() {
    participants_.clear();
    rows_.clear();
}

int Allotment::add_sequence(int n_rows, double tokens, double stake, int place, int most) {
    participants_.push_back({n_rows, tokens, stake, place, most, rows_.size(), 0});
    return static_cast<int>(participants_.size()) - 1;
}

int Allotment::n_certain() const {
    int n = 0;
    for (const Participant& one : participants_) n += one.n_rows;
    return n;
}

// What comes after another row was added after it, and stays there. Chains are in order already.
void Allotment::sort() {
    sorted_.clear();
    ends_.assign(1, 0);
    for (const Participant& one : participants_) {
        const std::span own = std::span(rows_).subspan(one.first_row, one.longest);
        if (!std::ranges::is_sorted(own, std::greater{}, &Row::gain))
            std::ranges::sort(own, [](const Row& a, const Row& b) {
                return std::tie(b.gain, a.number) < std::tie(a.gain, b.number);
            });
        const auto most = own.first(std::min(one.longest, one.most));
        sorted_.insert(sorted_.end(), most.begin(), most.end());
        ends_.push_back(std::ssize(sorted_));
    }
    // Neighbours are merged until all are.
    while (ends_.size() > 2) {
        merged_.resize(sorted_.size());
        std::size_t n = 0;
        for (std::size_t i = 0; i + 1 < ends_.size(); i += 2) {
            const auto from = sorted_.begin() + ends_[i];
            const auto middle = sorted_.begin() + ends_[i + 1];
            const auto to = sorted_.begin() + ends_[std::min(i + 2, ends_.size() - 1)];
            std::merge(from, middle, middle, to, merged_.begin() + ends_[i],
                       [](const Row& a, const Row& b) { return a.gain > b.gain; });
            ends_[++n] = to - sorted_.begin();
        }
        ends_.resize(n + 1);
        sorted_.swap(merged_);
    }
}

void Allotment::allot(Prices prices) {
    sort();
    lengths_.assign(participants_.size(), 0);
    const int n = n_certain();
    const int n_candidates = static_cast<int>(sorted_.size());
    int best = 0;
    double most_saved = 0;
    double gain = 0;
    double stake = 0;
    for (int k = 1; k <= n_candidates; ++k) {
        const Row& row = sorted_[k - 1];
        gain += row.gain;
        if (lengths_[row.sequence]++ == 0) stake += participants_[row.sequence].stake;
        const double extra = prices[n + k] - prices[n];
        if (extra > stake || gain - extra <= most_saved) continue;
        most_saved = gain - extra;
        best = k;
    }
    start();
    for (const Row& row : std::span(sorted_).first(best)) add(row);
    seconds_ = prices[n + best];
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

void Allotment::allot_alike(Prices prices) {
    const auto length = [](const Participant& one, int g) {
        return std::min(one.longest, one.most) < g ? 0 : g;
    };
    const auto width = [&](const Participant& one, int g) { return one.n_rows + length(one, g); };
    const auto seconds = [&](int g) {
        double total = 0;
        int n = 0;
        for (std::size_t i = 0; i < participants_.size(); ++i) {
            n += width(participants_[i], g);
            const bool goes_on = i + 1 < participants_.size() &&
                                 participants_[i + 1].place == participants_[i].place + 1 &&
                                 width(participants_[i + 1], g) == width(participants_[i], g);
            if (goes_on) continue;
            total += prices[n];
            n = 0;
        }
        return total;
    };
    const double plain = seconds(0);
    int most = 0;
    for (const Participant& one : participants_) most = std::max(most, one.longest);
    double most_saved = 0;
    int best = 0;
    for (int g = 1; g <= most; ++g) {
        double gain = 0;
        double stake = 0;
        for (const Participant& one : participants_) {
            if (length(one, g) > 0) stake += one.stake;
            for (int t = 0; t < length(one, g); ++t) gain += rows_[one.first_row + t].gain;
        }
        const double extra = seconds(g) - plain;
        if (extra > stake || gain - extra <= most_saved) continue;
        most_saved = gain - extra;
        best = g;
    }
    start();
    for (const Participant& one : participants_)
        for (int t = 0; t < length(one, best); ++t) add(rows_[one.first_row + t]);
    seconds_ = seconds(best);
}

}  // namespace specllama
