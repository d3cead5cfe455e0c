#pragma once

#include <span>
#include <vector>

#include "draft/sampled_draft.h"
#include "specllama/evidence.h"
#include "specllama/types.h"

namespace specllama {

// A tree of tokens: several candidate continuations of a sequence that share their common
// beginnings. (Miao et al., "SpecInfer", 2024, section 3.)
//
// Can be reused: it allocates only when it becomes larger than ever before.
class Tree {
 public:
    static constexpr int kRoot = -1;  // the sequence's last token
    static constexpr int kNone = -1;  // no node

    struct Node {
        Token token = kNoToken;
        Evidence evidence;
        const Distribution* drawn_from = nullptr;  // see SampledDraft
        int parent = kRoot;
        int depth = 0;      // number of its ancestors
        int rank = 0;       // number of siblings before it
        int elder = kNone;  // the sibling just before it
        int first = kNone;  // its first child
        int next = kNone;   // its next sibling
        int leaf = 0;       // index of its first leaf, in depth-first order
        int n_leaves = 1;   // number of leaves below it; 1 for a leaf
    };
    struct Limits {
        int nodes = 0;
        int leaves = 1;
        int siblings = 1;
    };

    void clear();

    // Adds a draft, its main path first. Tokens that are already in the tree are shared; the others
    // are added within the limits.
    void add(const SampledDraft& draft, const Limits& limits);

    // Replaces the tree by the nodes of `other` that are kept and whose ancestors are kept. They
    // are in depth-first order, elder siblings first, so the main path comes first.
    void take(const Tree& other, const std::vector<bool>& kept);

    bool empty() const { return nodes_.empty(); }
    int size() const { return static_cast<int>(nodes_.size()); }
    const Node& operator[](int node) const { return nodes_[node]; }
    std::span<const Node> nodes() const { return nodes_; }
    // The first child; Node::next leads to the others.
    int first_child(int node) const { return node == kRoot ? first_ : nodes_[node].first; }
    // The child with this token, or kNone.
    int child(int node, Token token) const;

    // For a tree filled by `take`: the length of its main path, and the number of its leaves (at
    // least 1).
    int n_main_path() const;
    int n_leaves() const { return n_leaves_; }

 private:
    int grow(int parent, const Node& node, const Limits& limits);
    int append(int parent, const Node& node);
    void take_below(const Tree& other, int from, int to, const std::vector<bool>& kept);
    void count_leaves();

    std::vector<Node> nodes_;
    std::vector<int> last_child_;  // [node]
    int first_ = kNone;            // first and last child of the root
    int last_ = kNone;
    int n_leaves_ = 1;
    std::vector<int> path_;  // nodes of the main path of the draft being added
};

// For a tree filled by `take`: how many nodes of a path from the root are on the main path.
int n_on_main_path(std::span<const int> path);

}  // namespace specllama
