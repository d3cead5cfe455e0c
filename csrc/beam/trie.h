#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "specllama/types.h"

namespace specllama {

using NodeId = int;

// A possible next token, and the natural logarithm of its probability.
struct Successor {
    Token token = kNoToken;
    double logprob = 0;
};

// The texts of a search after its prompt. A node is a token that follows its parent's, and
// represents the text that ends with it. The root is the prompt. Pure.
class Trie {
 public:
    static constexpr NodeId kRoot = 0;
    static constexpr NodeId kNone = -1;

    // n_successors: number of successors kept per node.
    explicit Trie(int n_successors);

    // A node's child with this token, which is added if it does not exist.
    NodeId child(NodeId parent, Token token);

    Token token(NodeId node) const { return nodes_[node].token; }
    NodeId parent(NodeId node) const { return nodes_[node].parent; }
    // Tokens from the root to the node.
    int depth(NodeId node) const { return nodes_[node].depth; }
    int size() const { return static_cast<int>(nodes_.size()); }

    // The node's ancestor at this depth, at most the node's own.
    NodeId ancestor(NodeId node, int depth) const;
    // The deepest common ancestor; a node counts as an ancestor of itself.
    NodeId common(NodeId a, NodeId b) const;
    bool descends(NodeId node, NodeId from) const {
        return depth(node) >= depth(from) && ancestor(node, depth(from)) == from;
    }
    // Appends the tokens after `from`, an ancestor, up to `to`.
    void append_path(NodeId from, NodeId to, std::vector<Token>& tokens) const;

    // The successors of a node, the likeliest first: known once the target has decoded the node.
    bool known(NodeId node) const { return nodes_[node].successors >= 0; }
    std::span<const Successor> successors(NodeId node) const {
        return std::span(successors_).subspan(nodes_[node].successors, n_successors_);
    }
    // Marks a node's successors as known; the caller writes them.
    std::span<Successor> learn(NodeId node);
    void forget(NodeId node) { nodes_[node].successors = -1; }

 private:
    struct Node {
        Token token = kNoToken;
        NodeId parent = kNone;
        int depth = 0;
        NodeId first_child = kNone;
        NodeId next_sibling = kNone;
        std::ptrdiff_t successors = -1;  // offset in successors_; -1: unknown
    };

    std::size_t n_successors_;
    std::vector<Node> nodes_{1};
    std::vector<Successor> successors_;
};

}  // namespace specllama
