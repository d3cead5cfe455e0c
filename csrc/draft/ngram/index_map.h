#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace specllama {

// Hash table from 32-bit hashes to 32-bit indices of nodes that the caller stores. Uses open
// addressing and linear probing, without tombstones. Several nodes may have the same hash; the
// caller distinguishes them.
class IndexMap {
 public:
    static constexpr std::uint32_t kNone = 0xffffffff;

    IndexMap();

    // The index stored under `hash` for which same(index) holds, or kNone. Never allocates.
    template <typename Same>
    std::uint32_t find(std::uint32_t hash, Same same) const {
        for (std::size_t at = hash & mask_; slots_[at].index != kNone; at = (at + 1) & mask_)
            if (slots_[at].hash == hash && same(slots_[at].index)) return slots_[at].index;
        return kNone;
    }

    // Adds an entry, which must not exist yet. May allocate.
    void insert(std::uint32_t hash, std::uint32_t index);

    // Removes the entry of this hash and index, which must exist.
    void erase(std::uint32_t hash, std::uint32_t index);

    std::size_t size_bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
    struct Slot {
        std::uint32_t hash = 0;
        std::uint32_t index = kNone;
    };

    void put(Slot slot);

    std::vector<Slot> slots_;  // size: a power of two; at most 3/4 in use
    std::size_t mask_;
    std::size_t size_ = 0;
};

}  // namespace specllama
