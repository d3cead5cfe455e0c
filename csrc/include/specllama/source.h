#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace specllama {

// Where a draft token comes from: a match (copied from an earlier place with the same tokens), the
// corpus or an earlier request (copied likewise), n-grams (by frequency), the request's grammar, a
// draft model, any other drafter.
enum class Source : std::uint8_t { match, corpus, history, ngram, grammar, model, other };

// Names of the sources, in the order of the enum. Code that shows or binds all sources goes through
// this list.
inline constexpr std::array kSourceNames = {"match",   "corpus", "history", "ngram",
                                            "grammar", "model",  "other"};
static_assert(kSourceNames.size() == static_cast<std::size_t>(Source::other) + 1);

constexpr const char* name(Source source) { return kSourceNames[static_cast<std::size_t>(source)]; }

}  // namespace specllama
