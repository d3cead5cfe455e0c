#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace specllama {

// At most `capacity` nodes, addressed by 32-bit indices. Freed nodes are reused; their list is
// linked through the node's member `Link`.
template <typename Node, std::uint32_t Node::*Link>
class Pool {
 public:
    static constexpr std::uint32_t kNone = 0xffffffff;

    explicit Pool(std::size_t capacity) : capacity_(capacity) {}

    Node& operator[](std::uint32_t index) { return nodes_[index]; }
    const Node& operator[](std::uint32_t index) const { return nodes_[index]; }

    bool full() const { return used_ == capacity_; }

    // The pool must not be full.
    std::uint32_t add(const Node& node) {
        ++used_;
        if (free_ != kNone) {
            const std::uint32_t index = free_;
            free_ = nodes_[index].*Link;
            nodes_[index] = node;
            return index;
        }
        if (nodes_.size() == nodes_.capacity())
            nodes_.reserve(std::min(std::max<std::size_t>(64, nodes_.size() * 2), capacity_));
        nodes_.push_back(node);
        return static_cast<std::uint32_t>(nodes_.size() - 1);
    }

    void remove(std::uint32_t index) {
        --used_;
        nodes_[index].*Link = free_;
        free_ = index;
    }

    std::size_t size_bytes() const { return nodes_.capacity() * sizeof(Node); }

 private:
    std::size_t capacity_;
    std::vector<Node> nodes_;
    std::size_t used_ = 0;
    std::uint32_t free_ = kNone;
};

}  // namespace specllama
