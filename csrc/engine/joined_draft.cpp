#include "engine/joined_draft.h"

namespace specllama {

void JoinedDraft::join(std::span<const Draft* const> drafts, std::size_t own,
                       const Tree::Limits& limits) {
    tree.clear();
    sides.clear();
    const Draft& trunk = *drafts[own];
    if (trunk.empty()) return;
    tree.add(trunk, limits);
    if (!trunk.drawn())
        for (const Draft* draft : drafts)
            if (!draft->drawn()) tree.add(*draft, limits);
    for (const Tree::Node& node : tree.nodes().subspan(trunk.size()))
        sides.push_back({node.evidence, node.parent, node.rank});
}

void JoinedDraft::judge(TokenSpan heard) {
    const int n_trunk = tree.size() - static_cast<int>(sides.size());
    int node = Tree::kRoot;
    for (const Token token : heard) {
        bool right = false;
        for (int at = tree.first_child(node); at != Tree::kNone && !right; at = tree[at].next) {
            right = tree[at].token == token;
            if (at >= n_trunk) sides[at - n_trunk].right = right;
        }
        if (!right) return;
        node = tree.child(node, token);
    }
}

}  // namespace specllama
