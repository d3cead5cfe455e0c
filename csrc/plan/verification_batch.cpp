#include "plan/verification_batch.h"

#include <tuple>

namespace specllama {

void VerificationBatch::clear() {
    n_certain_ = 0;
    participants_.clear();
    rows_.clear();
}

void VerificationBatch::add_sequence(int n_rows, double draft_budget, int stream, int most) {
    n_certain_ += n_rows;
    participants_.push_back({n_rows, draft_budget, stream, most, rows_.size()});
}

void VerificationBatch::select(DecodeCosts decode_costs, int most_rows) {
    // Rows of equal gain keep the order of adding, so no row comes before its predecessor.
    std::ranges::sort(rows_, [](const Row& a, const Row& b) {
        return std::tie(b.gain, a.sequence, a.number) < std::tie(a.gain, b.sequence, b.number);
    });
    chosen_.clear();
    tokens_.assign(1, 0);
    const int n = n_certain_;
    std::size_t best = 0;
    double most_time_saved = 0;
    double gain = 0;
    double draft_budget = 0;
    for (const Row& row : rows_) {
        if (std::ssize(chosen_) >= most_rows - n) break;
        Participant& one = participants_[row.sequence];
        if (one.n_chosen >= one.most) continue;
        const std::size_t n_rows = n + chosen_.size() + 1;
        const double step = decode_costs[n_rows] - decode_costs[n_rows - 1];
        if (row.gain < 0 || (n_rows > kMaxSpecLength + 1 && row.gain < step)) break;
        if (one.n_chosen++ == 0) draft_budget += one.draft_budget;
        gain += row.gain;
        chosen_.push_back(row);
        tokens_.push_back(tokens_.back() + row.tokens);
        const double extra = decode_costs[n_rows] - decode_costs[n];
        if (extra > draft_budget || gain - extra <= most_time_saved) continue;
        most_time_saved = gain - extra;
        best = chosen_.size();
    }
    chosen_.erase(chosen_.begin() + static_cast<std::ptrdiff_t>(best), chosen_.end());
    seconds_ = decode_costs[n + best];
}

void VerificationBatch::select_per_stream(DecodeCosts decode_costs) {
    const auto length = [](const Participant& one, int g) {
        return std::min(one.longest, one.most) < g ? 0 : g;
    };
    int most = 0;
    for (const Participant& one : participants_) most = std::max(most, one.longest);
    double plain = 0;
    double most_time_saved = 0;
    int best = 0;
    for (int g = 0; g <= most; ++g) {
        double seconds = 0;
        double gain = 0;
        double draft_budget = 0;
        int n = 0;  // rows of the current decode
        for (std::size_t i = 0; i < participants_.size(); ++i) {
            const Participant& one = participants_[i];
            const int n_rows = one.n_rows + length(one, g);
            n += n_rows;
            if (length(one, g) > 0) draft_budget += one.draft_budget;
            for (int t = 0; t < length(one, g); ++t) gain += rows_[one.first_row + t].gain;
            if (i + 1 < participants_.size()) {
                const Participant& next = participants_[i + 1];
                if (next.stream == one.stream + 1 && next.n_rows + length(next, g) == n_rows)
                    continue;
            }
            seconds += decode_costs[n];
            n = 0;
        }
        if (g == 0) plain = seconds_ = seconds;
        const double extra = seconds - plain;
        if (extra > draft_budget || gain - extra <= most_time_saved) continue;
        most_time_saved = gain - extra;
        best = g;
        seconds_ = seconds;
    }
    chosen_.clear();
    for (const Participant& one : participants_)
        for (int t = 0; t < length(one, best); ++t) chosen_.push_back(rows_[one.first_row + t]);
}

}  // namespace specllama
