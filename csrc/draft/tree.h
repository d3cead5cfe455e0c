#pragma once

#include <span>
#include <vector>

#include "draft/sampled_draft.h"
#include "specllama/evidence.h"
#include "specllama/types.h"

namespace specllama {

// A tree of tokens: several guesses at how a sequence goes on, which share their common beginnings.
// (Miao et al., "SpecInfer", 2024, section 3.)
//
// Can be filled again and again: it allocates only to become larger than it ever was.
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
        int rank = 0;       // number of siblings that were there before it
        int elder = kNone;  // the youngest of these siblings
        int first = kNone;  // its first child
        int next = kNone;   // its next sibling
        int leaf = 0;       // number of its first leaf, in depth-first order
        int n_leaves = 1;   // number of leaves below it; 1 for a leaf
    };
    struct Limits {
        int nodes = 0;
        int leaves = 1;
        int siblings = 1;
    };

    void clear();

    // Adds a draft, main path first: shares what is in the tree already and adds the rest, as far
    // as the limits allow.
    void add(const SampledDraft& draft, const Limits& limits);

    // Replaces the tree by the nodes of another one that are kept and whose parents are kept; depth
    // first and the elder sibling first, so that the first nodes are a chain, the main path.
    void take(const Tree& other, const std::vector<bool>& kept);

    bool empty() const { return nodes_.empty(); }
    int size() const { return static_cast<int>(nodes_.size()); }
    const Node& operator[](int node) const { return nodes_[node]; }
    std::span<const Node> nodes() const { return nodes_; }
    // The first child; Node::next leads to the others.
    int first_child(int node) const { return node == kRoot ? first_ : nodes_[node].first; }
    // The child with this token, or kNone.
    int child(int node, Token token) const;

    // For a tree that `take` filled: the length of its main path, and the number of its leaves, at
    // least 1.
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
    std::vector<int> path_;  // nodes along the main path of the draft that is being added
};

// For a tree that `take` filled: how many nodes of a path from the root lie on the main path.
int n_on_main_path(std::span<const int> path);

}  // namespace specllama
