#include "engine/speculator/joined_draft.h"

namespace specllama {

void JoinedDraft::join(std::span<const SampledDraft* const> drafts, std::size_t own,
                       const Tree::Limits& limits) {
    tree.clear();
    alternatives.clear();
    const SampledDraft& main_path = *drafts[own];
    if (main_path.empty()) return;
    tree.add(main_path, limits);
    if (!main_path.drawn())
        for (const SampledDraft* draft : drafts)
            if (!draft->drawn()) tree.add(*draft, limits);
    for (const Tree::Node& node : tree.nodes().subspan(main_path.size()))
        alternatives.push_back({node.evidence, node.parent, node.rank});
}

void JoinedDraft::judge(TokenSpan target_tokens) {
    const int n_main = tree.size() - static_cast<int>(alternatives.size());
    int node = Tree::kRoot;
    for (const Token token : target_tokens) {
        bool right = false;
        for (int at = tree.first_child(node); at != Tree::kNone && !right; at = tree[at].next) {
            right = tree[at].token == token;
            if (at >= n_main) alternatives[at - n_main].right = right;
        }
        if (!right) return;
        node = tree.child(node, token);
    }
}

}  // namespace specllama
