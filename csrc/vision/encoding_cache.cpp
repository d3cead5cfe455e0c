#include "vision/encoding_cache.h"

#include <algorithm>

namespace specllama {

std::span<float> EncodingCache::find(const std::string& key) {
    const auto found = std::ranges::find(entries_, key, &Entry::key);
    if (found == entries_.end()) return {};
    entries_.splice(entries_.begin(), entries_, found);
    return found->states;
}

void EncodingCache::keep(const std::string& key, std::span<const float> states) {
    if (states.size_bytes() > most_bytes_) return;
    while (n_bytes_ + states.size_bytes() > most_bytes_) {
        n_bytes_ -= std::span(entries_.back().states).size_bytes();
        entries_.pop_back();
    }
    entries_.push_front({key, {states.begin(), states.end()}});
    n_bytes_ += states.size_bytes();
}

}  // namespace specllama
