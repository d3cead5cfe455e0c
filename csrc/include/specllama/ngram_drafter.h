#pragma once

#include <cstddef>
#include <memory>

namespace specllama {

class Drafter;

// Options of the n-gram predictor and of the drafter built on it.
struct NGramOptions {
    // Longest n-gram, 2 to 8: a context has up to max_order - 1 tokens.
    int max_order = 4;
    // Only counts of the last `window` tokens are kept; 0: of all tokens.
    int window = 0;
    // Most bytes of the frequency tables; the oldest contexts are dropped first. To find matches,
    // the drafter also keeps the text and a reference text, each within the same bound.
    std::size_t max_bytes = std::size_t{64} << 20;
    // Above temperature 0, draw draft tokens from the relative frequencies instead of taking the
    // most frequent one. With rejection, more of them are accepted that way.
    bool draw = false;
};

// The n-gram drafter: proposes what followed the same tokens earlier in the sequence or in its
// reference text, by frequency or as a copy. Throws InvalidArgument when an option is out of range.
std::shared_ptr<Drafter> make_ngram_drafter(const NGramOptions& options = {});

}  // namespace specllama
