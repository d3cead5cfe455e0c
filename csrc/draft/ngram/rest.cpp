#include "draft/ngram/rest.h"

#include <algorithm>

namespace specllama {

int add_rest(Draft& draft, const Draft& other, int most) {
    const int n_own = draft.size();
    const int n = std::min(other.size(), most);
    if (n <= n_own || draft.drawn() || other.drawn() ||
        !std::ranges::equal(draft.tokens, TokenSpan(other.tokens).first(n_own)))
        return 0;
    for (int t = n_own; t < n; ++t) draft.push(other.tokens[t], other.evidence[t]);
    return n - n_own;
}

}  // namespace specllama
