#include "beam/trie.h"

#include <algorithm>
#include <utility>

namespace specllama {

Trie::Trie(int n_successors) : n_successors_(n_successors) {}

NodeId Trie::child(NodeId parent, Token token) {
    for (NodeId node = nodes_[parent].first_child; node != kNone; node = nodes_[node].next_sibling)
        if (nodes_[node].token == token) return node;
    const NodeId added = size();
    const NodeId sibling = std::exchange(nodes_[parent].first_child, added);
    nodes_.push_back({token, parent, depth(parent) + 1, kNone, sibling, -1});
    return added;
}

NodeId Trie::ancestor(NodeId node, int depth) const {
    while (nodes_[node].depth > depth) node = nodes_[node].parent;
    return node;
}

NodeId Trie::common(NodeId a, NodeId b) const {
    const int shallower = std::min(depth(a), depth(b));
    a = ancestor(a, shallower);
    b = ancestor(b, shallower);
    while (a != b) {
        a = parent(a);
        b = parent(b);
    }
    return a;
}

void Trie::append_path(NodeId from, NodeId to, std::vector<Token>& tokens) const {
    const auto n_before = static_cast<std::ptrdiff_t>(tokens.size());
    for (NodeId node = to; node != from; node = parent(node)) tokens.push_back(token(node));
    std::reverse(tokens.begin() + n_before, tokens.end());
}

std::span<Successor> Trie::learn(NodeId node) {
    nodes_[node].successors = std::ssize(successors_);
    successors_.resize(successors_.size() + n_successors_);
    return std::span(successors_).last(n_successors_);
}

}  // namespace specllama
