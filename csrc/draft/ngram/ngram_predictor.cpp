#include "draft/ngram/ngram_predictor.h"

#include <algorithm>
#include <string>

#include "fnv.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// The context of an n-gram of this order at the end of the tail.
template <typename Tail>
TokenSpan context(const Tail& tail, std::size_t n_tail, int order) {
    const auto n = static_cast<std::size_t>(order - 1);
    return TokenSpan(tail).subspan(n_tail - n, n);
}

// Appends a token to the tail, and removes the oldest when it is full.
template <typename Tail>
void append(Tail& tail, std::size_t& n_tail, std::size_t n_most, Token token) {
    if (n_tail == n_most)
        std::shift_left(tail.begin(), tail.begin() + n_tail, 1);
    else
        ++n_tail;
    tail[n_tail - 1] = token;
}

NGramPredictor::Prediction prediction(const FrequencyTable::Best& one, int order) {
    if (one.token == kNoToken) return {};
    return {one.token, order, static_cast<float>(one.count) / static_cast<float>(one.total),
            one.total};
}

}  // namespace

NGramPredictor::NGramPredictor(const NGramOptions& options)
    : max_order_(options.max_order), window_(static_cast<std::size_t>(options.window)) {
    check_options(options);
    const auto n_orders = static_cast<std::size_t>(max_order_) - kMinOrder + 1;
    capacity_ = std::min<std::size_t>(options.max_bytes / n_orders / FrequencyTable::kBytesPerPair,
                                      std::size_t{1} << 31);
    tables_.assign(n_orders, FrequencyTable(capacity_));
}

void NGramPredictor::update(Token token) {
    if (window_ > 0) forget_oldest();
    for (int order = kMinOrder; order <= max_order_; ++order) {
        if (n_tail_ < static_cast<std::size_t>(order - 1)) break;
        tables_[order - kMinOrder].count(fnv1a(context(tail_, n_tail_, order)), token, n_tokens_);
    }
    append(tail_, n_tail_, max_order_ - 1, token);
    if (window_ > 0) {
        const std::size_t n_ring = window_ + max_order_ - 1;
        if (history_.size() < n_ring)
            history_.push_back(token);
        else
            history_[n_tokens_ % n_ring] = token;
    }
    ++n_tokens_;
}

void NGramPredictor::forget_oldest() {
    if (n_tokens_ < window_) return;
    // gram: the token that leaves the window, after the context that it had.
    const std::size_t n_ring = window_ + max_order_ - 1;
    const std::size_t leaving = n_tokens_ - window_;
    std::array<Token, kMaxOrder> gram;
    const std::size_t n_context = std::min<std::size_t>(leaving, max_order_ - 1);
    for (std::size_t i = 0; i <= n_context; ++i)
        gram[i] = history_[(leaving - n_context + i) % n_ring];
    for (std::size_t n = 1; n <= n_context; ++n) {
        const TokenSpan known(gram.data() + n_context - n, n);
        tables_[n - 1].forget(fnv1a(known), gram[n_context], static_cast<std::uint32_t>(leaving));
    }
}

void NGramPredictor::update_batch(TokenSpan tokens) {
    for (const Token token : tokens) update(token);
}

// Calls ask(table, hash of the context), the longest context first, until it returns true. Returns
// the order of that context, or 0.
template <typename Ask>
int NGramPredictor::Walk::longest(Ask ask) const {
    const int longest = std::min(predictor.max_order_, static_cast<int>(n_tail) + 1);
    for (int order = longest; order >= kMinOrder; --order)
        if (ask(predictor.tables_[order - kMinOrder], fnv1a(context(tail, n_tail, order))))
            return order;
    return 0;
}

NGramPredictor::Prediction NGramPredictor::Walk::best() const {
    FrequencyTable::Best best;
    const int order = longest([&](const FrequencyTable& table, std::uint64_t hash) {
        best = table.best(hash);
        return best.token != kNoToken;
    });
    return prediction(best, order);
}

NGramPredictor::Prediction NGramPredictor::Walk::second(int order) const {
    const std::uint64_t hash = fnv1a(context(tail, n_tail, order));
    return prediction(predictor.tables_[order - kMinOrder].second(hash), order);
}

int NGramPredictor::Walk::frequencies(Distribution& out) const {
    return longest([&](const FrequencyTable& table, std::uint64_t hash) {
        table.frequencies(hash, out);
        return !out.empty();
    });
}

void NGramPredictor::Walk::go(Token token) {
    append(tail, n_tail, predictor.max_order_ - 1, token);
}

// A context has at most the last max_order - 1 tokens.
NGramPredictor::Walk NGramPredictor::walk(TokenSpan behind) const {
    Walk walk{*this, tail_, n_tail_};
    for (const Token token : behind.last(std::min<std::size_t>(behind.size(), max_order_ - 1)))
        walk.go(token);
    return walk;
}

int NGramPredictor::n_known() const { return std::max(walk().best().order - 1, 0); }

std::size_t NGramPredictor::predict(std::span<Prediction> out) const {
    Walk walk = this->walk();
    std::size_t n = 0;
    for (; n < out.size(); ++n) {
        out[n] = walk.best();
        if (out[n].token == kNoToken) break;
        walk.go(out[n].token);
    }
    return n;
}

NGramPredictor::Prediction NGramPredictor::next(TokenSpan behind, Prediction* alternative) const {
    const Walk walk = this->walk(behind);
    const Prediction best = walk.best();
    if (alternative != nullptr)
        *alternative = best.token == kNoToken ? Prediction() : walk.second(best.order);
    return best;
}

std::size_t NGramPredictor::size_bytes() const {
    std::size_t bytes = sizeof(*this) + history_.capacity() * sizeof(Token);
    for (const FrequencyTable& table : tables_) bytes += table.size_bytes();
    return bytes;
}

}  // namespace specllama
