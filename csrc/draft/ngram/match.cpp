#include "draft/ngram/match.h"

#include <algorithm>

namespace specllama {

int common_suffix(TokenSpan a, TokenSpan b) {
    const auto n = std::min({a.size(), b.size(), std::size_t{kMaxMatch}});
    const auto end = a.rbegin() + static_cast<std::ptrdiff_t>(n);
    return static_cast<int>(std::mismatch(a.rbegin(), end, b.rbegin()).first - a.rbegin());
}

bool backwards_less(TokenSpan a, TokenSpan b) {
    const auto n = static_cast<std::size_t>(common_suffix(a, b));
    if (n == kMaxMatch || n == b.size()) return false;
    return n == a.size() || a[a.size() - 1 - n] < b[b.size() - 1 - n];
}

}  // namespace specllama
