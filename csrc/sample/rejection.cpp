#include "sample/rejection.h"

#include <algorithm>
#include <cstddef>

namespace specllama {

namespace {

// Calls visit(outcome, probability of its token in q) for each outcome of p.
template <typename Visit>
void for_each(Distribution& p, const Distribution& q, Visit visit) {
    auto other = q.begin();
    for (Outcome& outcome : p) {
        while (other != q.end() && other->token < outcome.token) ++other;
        const bool shared = other != q.end() && other->token == outcome.token;
        visit(outcome, shared ? other->probability : 0);
    }
}

// The first token, in order, at which the sum of the weights exceeds uniform * total.
Token draw(const Distribution& weights, double uniform) {
    double total = 0;
    for (const Outcome& outcome : weights) total += outcome.probability;
    double left = uniform * total;
    Token drawn = kNoToken;
    for (const auto& [token, weight] : weights) {
        if (weight == 0) continue;
        drawn = token;  // the last one, if rounding leaves a remainder
        left -= weight;
        if (left < 0) break;
    }
    return drawn;
}

// The rest of q after some guesses were drawn from it without replacement, scaled to sum to 1.
class Remainder {
 public:
    Remainder(const Distribution& q, std::span<const Guess> drawn) : q_(q), drawn_(drawn) {
        if (drawn.empty()) return;
        // Summed anew: 1 minus the drawn part would be only rounding error if nearly all is drawn.
        left_ = 0;
        for (const Outcome& outcome : q)
            if (!gone(outcome.token)) left_ += outcome.probability;
    }

    double operator()(Token token) const { return (*this)(token, probability(q_, token)); }
    // The same for a token whose probability in q is known.
    double operator()(Token token, double of_q) const {
        return of_q == 0 || gone(token) ? 0 : of_q / left_;
    }

 private:
    bool gone(Token token) const {
        return std::ranges::any_of(drawn_, [&](const Guess& guess) {
            return guess.drawn_from == &q_ && guess.token == token;
        });
    }

    const Distribution& q_;
    std::span<const Guess> drawn_;
    double left_ = 1;
};

}  // namespace

Token judge(Distribution& p, std::span<const Guess> guesses, double lenience, const Noise& accept,
            double residual) {
    double total = 1;  // sum of the weights that p now holds
    for (std::size_t i = 0; i < guesses.size(); ++i) {
        const auto [token, drawn_from] = guesses[i];
        static const Distribution kNothing;
        const Distribution& q = drawn_from == nullptr ? kNothing : *drawn_from;
        const Remainder remainder(q, guesses.first(i));
        const double proposed = drawn_from == nullptr ? 1 : remainder(token);
        const double number = uniform(accept.bits(static_cast<Token>(i)));
        if (number * lenience * proposed < probability(p, token) / total) return token;

        const auto rest = [&](const Outcome& outcome, double of_q) {
            if (drawn_from == nullptr) return outcome.token == token ? 0 : outcome.probability;
            return std::max(0.0, outcome.probability / total - remainder(outcome.token, of_q));
        };
        double left = 0;
        for_each(p, q, [&](Outcome& one, double of_q) { left += rest(one, of_q); });
        if (left == 0) break;  // p and q are equal up to rounding
        for_each(p, q, [&](Outcome& one, double of_q) { one.probability = rest(one, of_q); });
        total = left;
    }
    return draw(p, residual);
}

}  // namespace specllama
