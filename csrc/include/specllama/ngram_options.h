#pragma once

#include <cstddef>

#include "specllama/option.h"

namespace specllama {

// Options of the n-gram predictor and of the drafter built on it.
struct NGramOptions {
    int max_order = 4;
    int window = 0;
    std::size_t max_bytes = std::size_t{64} << 20;
    bool draw = false;
};

template <typename Visit>
void list_options(const NGramOptions*, Visit&& option) {
    using Options = NGramOptions;
    option(&Options::max_order, {.name = "ngram_order",
                                 .help = "Length of the longest n-gram, its last token included.",
                                 .low = 2,
                                 .high = 8});
    option(&Options::window, {.name = "ngram_window",
                              .help = "Number of latest tokens whose n-grams count. Matches to "
                                      "copy from are searched in the whole text.",
                              .low = 0,
                              .special = "0: all"});
    option(&Options::max_bytes,
           {.name = "ngram_max_bytes",
            .help = "Maximum size of the n-gram tables in bytes; the oldest contexts are dropped "
                    "first. Text "
                    "and reference are kept to find matches, each within the same bound.",
            .low = 65536});
    option(&Options::draw,
           {.name = "ngram_draw",
            .help = "Draw the n-gram drafts of sampled requests from relative frequencies. "
                    "Otherwise the most frequent token is taken. With acceptance=\"rejection\", "
                    "more is then accepted."});
}

}  // namespace specllama
