#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace specllama {

// Where a draft token comes from: a match (copied from where the same tokens stood before), the
// corpus (the same), n-grams (by frequencies), the request's grammar, a draft model, any other
// drafter.
enum class Source : std::uint8_t { match, corpus, ngram, grammar, model, other };

// What they are called, in that order: whoever shows or binds all of them goes through this list.
inline constexpr std::array kSourceNames = {"match",   "corpus", "ngram",
                                            "grammar", "model",  "other"};
static_assert(kSourceNames.size() == static_cast<std::size_t>(Source::other) + 1);

constexpr const char* name(Source source) { return kSourceNames[static_cast<std::size_t>(source)]; }

}  // namespace specllama
