#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace specllama {

// Where a draft token comes from.
enum class Source : std::uint8_t {
    match,    // copied from an earlier place with the same tokens
    corpus,   // copied likewise from the corpus
    history,  // copied likewise from an earlier request
    ngram,    // n-grams, by frequency
    grammar,  // the request's grammar
    model,    // a draft model or head
    other,    // any other drafter
};

// Names of the sources, in the order of the enum. Code that shows or binds all sources iterates
// over this list.
inline constexpr std::array kSourceNames = {"match",   "corpus", "history", "ngram",
                                            "grammar", "model",  "other"};
static_assert(kSourceNames.size() == static_cast<std::size_t>(Source::other) + 1);

constexpr const char* name(Source source) { return kSourceNames[static_cast<std::size_t>(source)]; }

}  // namespace specllama
