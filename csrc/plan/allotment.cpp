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
    participants_.push_back({n_rows, tokens, stake, place, most, rows_.size(), 0, 0, 0});
    return static_cast<int>(participants_.size()) - 1;
}

int Allotment::n_certain() const {
    int n = 0;
    for (const Participant& one : participants_) n += one.n_rows;
    return n;
}

// Each sequence's rows by their gain. What comes after another row was added after it, and stays
// there. Chains are in order already.
void Allotment::sort() {
    for (Participant& one : participants_) {
        const std::span own = std::span(rows_).subspan(one.first_row, one.longest);
        if (!std::ranges::is_sorted(own, std::greater{}, &Row::gain))
            std::ranges::sort(own, [](const Row& a, const Row& b) {
                return std::tie(b.gain, a.number) < std::tie(a.gain, b.number);
            });
        pass_to(one, one.first_row);
    }
}

void Allotment::pass_to(Participant& one, std::size_t row) const {
    const bool ends = row == one.first_row + std::min(one.longest, one.most);
    one.next_row = row;
    one.next_gain = ends ? -std::numeric_limits<double>::infinity() : rows_[row].gain;
}

void Allotment::allot(Prices prices) {
    sort();
    taken_.clear();
    const int n = n_certain();
    std::size_t best = 0;
    double most_saved = 0;
    double gain = 0;
    double stake = 0;
    while (!participants_.empty()) {
        Participant& one = *std::ranges::max_element(participants_, {}, &Participant::next_gain);
        if (one.next_gain < 0) break;
        const std::size_t n_rows = n + taken_.size() + 1;
        const double step = prices[n_rows] - prices[n_rows - 1];
        if (n_rows > kMaxSpecLength + 1 && one.next_gain < step) break;
        if (one.next_row == one.first_row) stake += one.stake;
        gain += one.next_gain;
        taken_.push_back(one.next_row);
        pass_to(one, one.next_row + 1);
        const double extra = prices[n_rows] - prices[n];
        if (extra > stake || gain - extra <= most_saved) continue;
        most_saved = gain - extra;
        best = taken_.size();
    }
    start();
    for (const std::size_t row : std::span(taken_).first(best)) add(rows_[row]);
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
