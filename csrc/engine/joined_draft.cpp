#include "engine/joined_draft.h"

namespace specllama {

void JoinedDraft::join(std::span<const Draft* const> drafts, std::size_t own,
                       const Tree::Limits& limits) {
    tree_.clear();
    sides_.clear();
    const Draft& trunk = *drafts[own];
    if (trunk.empty()) return;
    tree_.add(trunk, limits);
    if (!trunk.drawn())
        for (const Draft* draft : drafts)
            if (!draft->drawn()) tree_.add(*draft, limits);
    for (const Tree::Node& node : tree_.nodes().subspan(trunk.size()))
        sides_.push_back({.evidence = node.evidence,
                          .parent = node.parent,
                          .rank = node.rank,
                          .elder = node.elder});
}

void JoinedDraft::judge(TokenSpan heard) {
    const int n_trunk = tree_.size() - static_cast<int>(sides_.size());
    int node = Tree::kRoot;
    for (const Token token : heard) {
        bool right = false;
        for (int at = tree_.first_child(node); at != Tree::kNone && !right; at = tree_[at].next) {
            right = tree_[at].token == token;
            if (at >= n_trunk) {
                sides_[at - n_trunk].heard = true;
                sides_[at - n_trunk].right = right;
            }
        }
        if (!right) return;
        node = tree_.child(node, token);
    }
}

}  // namespace specllama
