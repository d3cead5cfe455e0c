#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace specllama {

// Remembers which byte came where a grammar allows only a few bytes, such as white space or none,
// or one of two names.
class ByteHistory {
 public:
    // A hash of the last byte that is not white space, the white space after it, and the bytes that
    // may come next.
    using Context = std::uint64_t;
    static Context context(std::string_view text, std::string_view allowed);

    // A context depends on at most this many bytes at the end of a text.
    static constexpr std::size_t kReach = 64;
    // Most contexts held. When they are full, all are dropped before the next one is added.
    static constexpr std::size_t kMaxContexts = 4096;
    // Observations after which the counts of a context are halved, because the next text may have
    // another style.
    static constexpr int kMemory = 32;

    struct Entry {
        char byte = 0;    // the byte that came last
        int n = 0;        // times that another byte came
        int n_right = 0;  // of these, times that it was the same byte as before

        // The probability that the same byte comes again, by Laplace's rule of succession.
        float confidence() const {
            return (1.0F + static_cast<float>(n_right)) / (2.0F + static_cast<float>(n));
        }
    };
    // The entry of a context; null: never seen.
    const Entry* find(Context context) const;

    void learn(Context context, char byte);

 private:
    std::unordered_map<Context, Entry> entries_;
};

}  // namespace specllama
