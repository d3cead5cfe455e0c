#pragma once

#include <cstddef>
#include <list>
#include <span>
#include <string>
#include <vector>

namespace specllama {

// The last encodings of images and sounds, within a memory limit. Only one thread at a time may use
// it.
class EncodingCache {
 public:
    explicit EncodingCache(std::size_t most_bytes) : most_bytes_(most_bytes) {}

    // The encoding of a chunk by its key (MediaChunk::key); empty: it was not kept. Valid until the
    // next call of keep.
    std::span<float> find(const std::string& key);
    // Keeps a copy of an encoding, unless it alone exceeds the limit. The least recently used ones
    // make room.
    void keep(const std::string& key, std::span<const float> states);

 private:
    struct Entry {
        std::string key;
        std::vector<float> states;
    };

    std::size_t most_bytes_;
    std::size_t n_bytes_ = 0;
    std::list<Entry> entries_;  // the last used first
};

}  // namespace specllama
