#include "sample/rejection.h"

#include <algorithm>

namespace specllama {

namespace {

// Calls visit(token, max(0, p - q)) for every token of p, in order of tokens.
template <typename Visit>
void for_each_residual(const Distribution& p, const Distribution& q, Visit visit) {
    auto other = q.begin();
    for (const Outcome& outcome : p) {
        while (other != q.end() && other->token < outcome.token) ++other;
        const bool shared = other != q.end() && other->token == outcome.token;
        visit(outcome.token,
              std::max(0.0, outcome.probability - (shared ? other->probability : 0)));
    }
}

// The token at which the sum of the weights, in order of tokens, passes `uniform` of their total.
template <typename ForEach>
Token draw(double uniform, ForEach for_each_weight) {
    double total = 0;
    for_each_weight([&](Token, double weight) { total += weight; });
    double left = uniform * total;
    Token drawn = kNoToken;
    bool found = false;
    for_each_weight([&](Token token, double weight) {
        if (found || weight == 0) return;
        drawn = token;  // the last one, should rounding leave something over
        left -= weight;
        found = left < 0;
    });
    return drawn;
}

Token draw_residual(const Distribution& p, const Distribution& q, double uniform) {
    const Token drawn = draw(uniform, [&](auto visit) { for_each_residual(p, q, visit); });
    if (drawn != kNoToken) return drawn;
    // p and q are equal but for rounding.
    return draw(uniform, [&](auto visit) {
        for (const Outcome& outcome : p) visit(outcome.token, outcome.probability);
    });
}

}  // namespace

Token judge(const Distribution& p, Token drafted, const Distribution* q, double lenience,
            double accept, double residual) {
    const double proposed = q == nullptr ? 1 : probability(*q, drafted);
    if (accept * lenience * proposed < probability(p, drafted)) return drafted;
    if (q != nullptr) return draw_residual(p, *q, residual);
    return draw(residual, [&](auto visit) {
        for (const Outcome& outcome : p)
            visit(outcome.token, outcome.token == drafted ? 0 : outcome.probability);
    });
}

}  // namespace specllama
