#include "draft/ngram/index_map.h"

#include <utility>

namespace specllama {

namespace {
constexpr std::size_t kInitialSlots = 64;
}

IndexMap::IndexMap() : slots_(kInitialSlots), mask_(kInitialSlots - 1) {}

void IndexMap::put(Slot slot) {
    std::size_t at = slot.hash & mask_;
    while (slots_[at].index != kNone) at = (at + 1) & mask_;
    slots_[at] = slot;
}

void IndexMap::insert(std::uint32_t hash, std::uint32_t index) {
    if ((size_ + 1) * 4 > slots_.size() * 3) {
        std::vector<Slot> old(slots_.size() * 2);
        std::swap(old, slots_);
        mask_ = slots_.size() - 1;
        for (const Slot& slot : old)
            if (slot.index != kNone) put(slot);
    }
    put({hash, index});
    ++size_;
}

void IndexMap::erase(std::uint32_t hash, std::uint32_t index) {
    std::size_t hole = hash & mask_;
    while (slots_[hole].index != index) hole = (hole + 1) & mask_;
    // Close the hole: a later entry of the same run moves into it, unless its home slot is after
    // the hole.
    for (std::size_t at = (hole + 1) & mask_; slots_[at].index != kNone; at = (at + 1) & mask_) {
        const std::size_t home = slots_[at].hash & mask_;
        if (((at - home) & mask_) >= ((at - hole) & mask_)) {
            slots_[hole] = slots_[at];
            hole = at;
        }
    }
    slots_[hole] = {};
    --size_;
}

}  // namespace specllama
