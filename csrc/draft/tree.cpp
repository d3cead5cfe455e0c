#include "draft/tree.h"

#include <algorithm>
#include <cstddef>

namespace specllama {

void Tree::clear() {
    nodes_.clear();
    last_child_.clear();
    first_ = last_ = kNone;
    n_leaves_ = 1;
}

int Tree::child(int node, Token token) const {
    int at = first_child(node);
    while (at != kNone && nodes_[at].token != token) at = nodes_[at].next;
    return at;
}

int Tree::append(int parent, const Node& node) {
    const int at = size();
    int& last = parent == kRoot ? last_ : last_child_[parent];
    Node own = node;
    own.parent = parent;
    own.depth = parent == kRoot ? 0 : nodes_[parent].depth + 1;
    own.elder = last;
    own.first = own.next = kNone;
    if (last == kNone)
        (parent == kRoot ? first_ : nodes_[parent].first) = at;
    else
        nodes_[last].next = at;
    last = at;
    nodes_.push_back(own);
    last_child_.push_back(kNone);
    return at;
}

// Returns the child with the node's token, and adds it if it is missing; kNone if a limit forbids
// that.
int Tree::grow(int parent, const Node& node, const Limits& limits) {
    if (const int there = child(parent, node.token); there != kNone) return there;
    if (size() == limits.nodes) return kNone;
    const int elder = parent == kRoot ? last_ : last_child_[parent];
    const int rank = elder == kNone ? 0 : nodes_[elder].rank + 1;
    if (rank >= limits.siblings || (rank > 0 && n_leaves_ == limits.leaves)) return kNone;
    n_leaves_ += rank > 0;
    const int at = append(parent, node);
    nodes_[at].rank = rank;
    return at;
}

void Tree::add(const SampledDraft& draft, const Limits& limits) {
    path_.assign(1, kRoot);
    for (int i = 0; i < draft.size(); ++i) {
        const Node node{.token = draft.tokens[i],
                        .evidence = draft.evidence[i],
                        .drawn_from = draft.drawn_from[i]};
        const int at = grow(path_.back(), node, limits);
        if (at == kNone) break;
        path_.push_back(at);
    }
    bool broken = true;  // the previous token of the branch is not in the tree
    int at = kRoot;
    for (std::size_t i = 0; i < draft.branches.size(); ++i) {
        const Draft::BranchToken& one = draft.branches[i];
        if (!one.follows) {
            broken = one.depth >= static_cast<int>(path_.size());
            if (!broken) at = path_[one.depth];
        }
        if (broken) continue;
        const int grown = grow(at,
                               {.token = one.token,
                                .evidence = one.evidence,
                                .drawn_from = draft.branch_drawn_from[i]},
                               limits);
        broken = grown == kNone;
        if (!broken) at = grown;
    }
}

void Tree::take(const Tree& other, const std::vector<bool>& kept) {
    clear();
    take_below(other, kRoot, kRoot, kept);
    count_leaves();
}

void Tree::take_below(const Tree& other, int from, int to, const std::vector<bool>& kept) {
    for (int at = other.first_child(from); at != kNone; at = other[at].next)
        if (kept[at]) take_below(other, at, append(to, other[at]), kept);
}

// Each node with an elder sibling leads to another leaf.
void Tree::count_leaves() {
    n_leaves_ = 1;
    for (Node& node : nodes_) {
        n_leaves_ += node.elder != kNone;
        node.leaf = n_leaves_ - 1;
        node.n_leaves = 1;
    }
    for (int i = size() - 1; i >= 0; --i) {
        const Node& node = nodes_[i];
        if (node.parent == kRoot) continue;
        Node& parent = nodes_[node.parent];
        parent.n_leaves = std::max(parent.n_leaves, node.leaf + node.n_leaves - parent.leaf);
    }
}

int n_on_main_path(std::span<const int> path) {
    int n = 0;
    while (n < std::ssize(path) && path[n] == n) ++n;
    return n;
}

int Tree::n_main_path() const {
    int n = 0;
    while (n < size() && nodes_[n].parent == n - 1) ++n;
    return n;
}

}  // namespace specllama
