#include "sample/dry.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace specllama {

Dry::Dry(const SamplingOptions& options, AppendText append_text)
    : multiplier_(options.dry_multiplier),
      base_(options.dry_base),
      allowed_length_(static_cast<std::size_t>(options.dry_allowed_length)),
      last_n_(options.dry_penalty_last_n),
      append_text_(std::move(append_text)) {
    if (append_text_) breakers_ = options.dry_sequence_breakers;
    for (std::string& breaker : breakers_) {
        std::ranges::reverse(breaker);
        longest_breaker_ = std::max(longest_breaker_, breaker.size());
    }
}

void Dry::find(TokenSpan context) {
    found_.clear();
    const TokenSpan last =
        last_n_ < 0 ? context
                    : context.last(std::min(context.size(), static_cast<std::size_t>(last_n_)));
    match(last);
    for (std::size_t k = 1; k < last.size(); ++k)
        if (matched_[k] >= allowed_length_) add({last[last.size() - k], matched_[k]});
    if (found_.empty()) return;
    // The longest one of each token.
    std::ranges::sort(found_, [](const Match& a, const Match& b) {
        return a.token != b.token ? a.token < b.token : a.length > b.length;
    });
    const auto others = std::ranges::unique(found_, {}, &Match::token);
    found_.erase(others.begin(), others.end());
    if (breakers_.empty()) return;
    const Match& longest = *std::ranges::max_element(found_, {}, &Match::length);
    const std::size_t most = behind_breaker(last, longest.length);
    for (Match& match : found_) match.length = std::min(match.length, most);
    std::erase_if(found_, [&](const Match& match) {
        return match.length < allowed_length_ || breaks(match.token);
    });
}

// A repeated token is added once.
void Dry::add(const Match& match) {
    if (!found_.empty() && found_.back().token == match.token)
        found_.back().length = std::max(found_.back().length, match.length);
    else
        found_.push_back(match);
}

// The Z algorithm over the tokens in reverse: everything within the match that reaches farthest was
// already compared with the last tokens. (Gusfield, "Algorithms on strings, trees, and sequences",
// 1997, section 1.4.)
void Dry::match(TokenSpan last) {
    const std::size_t n = last.size();
    const auto backwards = [&](std::size_t i) { return last[n - 1 - i]; };
    matched_.resize(n);  // unlike assign, it doubles the capacity
    if (n > 0) matched_[0] = 0;
    std::size_t from = 0;  // the match that reaches farthest: [from, to)
    std::size_t to = 0;
    for (std::size_t k = 1; k < n; ++k) {
        std::size_t length = k < to ? std::min(matched_[k - from], to - k) : 0;
        while (k + length < n && backwards(length) == backwards(k + length)) ++length;
        matched_[k] = length;
        if (k + length <= to) continue;
        from = k;
        to = k + length;
    }
}

// The number of tokens after the last breaker, at most `most`. A breaker may begin in one token and
// end in another: then the tokens after the latter count.
std::size_t Dry::behind_breaker(TokenSpan last, std::size_t most) {
    text_.clear();
    ends_.clear();
    std::size_t at = std::string::npos;  // end of a breaker, counted from the text's end
    // A breaker found later may be longer and end nearer to the text's end, and breakers that end
    // in one of the last `most` tokens may begin before these.
    std::size_t n_bytes = std::string::npos;
    for (std::size_t i = 0; i < last.size(); ++i) {
        if (i == most) n_bytes = text_.size();
        const std::size_t enough = std::min(n_bytes, at);
        if (enough != std::string::npos && text_.size() + 1 >= enough + longest_breaker_) break;
        take_text(last[last.size() - 1 - i]);
        const std::size_t from = text_.size() - std::min(text_.size(), longest_breaker_ - 1);
        text_ += piece_;
        ends_.push_back(text_.size());
        for (const std::string& breaker : breakers_) at = std::min(at, text_.find(breaker, from));
    }
    const auto behind = std::ranges::upper_bound(ends_, at) - ends_.begin();
    return std::min(most, static_cast<std::size_t>(behind));
}

bool Dry::breaks(Token token) {
    if (breakers_.empty()) return false;
    take_text(token);
    return std::ranges::any_of(breakers_, [&](const std::string& breaker) {
        return piece_.find(breaker) != std::string::npos;
    });
}

// Writes a token's text backwards to piece_.
void Dry::take_text(Token token) {
    piece_.clear();
    append_text_(token, piece_);
    std::ranges::reverse(piece_);
}

double Dry::penalty(std::size_t length) const {
    return multiplier_ * std::pow(base_, static_cast<double>(length - allowed_length_));
}

}  // namespace specllama
