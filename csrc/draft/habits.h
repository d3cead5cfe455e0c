#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "specllama/types.h"

namespace specllama {

// Which byte comes in places of a text where only few may: white space or none, one of two names.
class Habits {
 public:
    // A place by what it looks like: the last byte before it that is no white space with all white
    // space behind that, and what may come.
    using Place = std::uint64_t;
    static Place place(std::string_view text, TokenSpan left);

    // Bytes of a text's end that a place may depend on.
    static constexpr std::size_t kReach = 64;
    // Most places: there are as many as grammars have. With one more, all are forgotten.
    static constexpr std::size_t kMostPlaces = 4096;
    // Of a habit's past so much counts: the next text may be of another style.
    static constexpr int kMemory = 32;

    struct Habit {
        char byte = 0;    // that came last
        int n = 0;        // times that the same could have come again
        int n_right = 0;  // and did

        // The estimate of its chance by Laplace's rule.
        float confidence() const {
            return (1.0F + static_cast<float>(n_right)) / (2.0F + static_cast<float>(n));
        }
    };
    // What came in such places; null: there was none.
    const Habit* find(Place place) const;

    void learn(Place place, char byte);

 private:
    std::unordered_map<Place, Habit> habits_;
};

}  // namespace specllama
