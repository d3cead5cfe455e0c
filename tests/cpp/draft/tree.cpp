#include "draft/tree.h"

#include <utility>
#include <vector>

#include "check.h"

using namespace specllama;

namespace {

// A main path, and chains that branch off after some of its tokens.
SampledDraft draft_of(const std::vector<Token>& main_path,
                      const std::vector<std::pair<int, std::vector<Token>>>& sides = {}) {
    SampledDraft draft;
    for (const Token token : main_path) draft.push(token, {});
    for (const auto& [depth, tokens] : sides) {
        draft.push_branch(depth, tokens.front(), {});
        for (std::size_t i = 1; i < tokens.size(); ++i) draft.extend_branch(tokens[i], {});
    }
    return draft;
}

constexpr Tree::Limits kWide = {.nodes = 64, .leaves = 64, .siblings = 8};

Tree taken(const Tree& tree) {
    Tree out;
    out.take(tree, std::vector<bool>(tree.size(), true));
    return out;
}

std::vector<Token> tokens_of(const Tree& tree) {
    std::vector<Token> tokens;
    for (const Tree::Node& node : tree.nodes()) tokens.push_back(node.token);
    return tokens;
}

}  // namespace

TEST(common_prefixes_of_paths_are_shared) {
    Tree tree;
    tree.add(draft_of({1, 2, 3}, {{1, {5, 6}}, {1, {5, 7}}, {0, {1, 2, 9}}}), kWide);
    tree.add(draft_of({1, 5, 6, 8}), kWide);
    CHECK(tree.size() == 8);
    CHECK(tree.child(Tree::kRoot, 1) == 0);
    CHECK(tree.child(0, 5) == 3);
    CHECK(tree.child(3, 6) == 4);
    CHECK(tree.child(3, 7) == 5);
    CHECK(tree.child(1, 9) == 6);
    CHECK(tree.child(4, 8) == 7);
    CHECK(tree.child(0, 9) == Tree::kNone);
    CHECK(tree[3].rank == 1);
    CHECK(tree[3].elder == 1);
    CHECK(tree[7].depth == 3);
}

TEST(nodes_are_depth_first_with_leaves_of_a_node_together) {
    Tree tree;
    tree.add(draft_of({1, 2, 3}, {{0, {4}}, {1, {5, 6}}, {2, {7}}, {1, {8}}}), kWide);
    const Tree all = taken(tree);
    CHECK(tokens_of(all) == (std::vector<Token>{1, 2, 3, 7, 5, 6, 8, 4}));
    CHECK(all.n_main_path() == 3);
    CHECK(all.n_leaves() == 5);
    const std::vector<int> leaf = {0, 0, 0, 1, 2, 2, 3, 4};
    const std::vector<int> n_leaves = {4, 2, 1, 1, 1, 1, 1, 1};
    for (int i = 0; i < all.size(); ++i) {
        CHECK(all[i].leaf == leaf[i]);
        CHECK(all[i].n_leaves == n_leaves[i]);
    }
}

TEST(the_first_kept_path_is_the_main_path) {
    Tree tree;
    tree.add(draft_of({1, 2}, {{0, {4, 5}}}), kWide);
    Tree some;
    some.take(tree, {false, false, true, true});
    CHECK(tokens_of(some) == (std::vector<Token>{4, 5}));
    CHECK(some.n_main_path() == 2);
    CHECK(some.n_leaves() == 1);
    CHECK(some[0].rank == 1);
    CHECK(n_on_main_path(std::vector<int>{0, 1}) == 2);
    CHECK(n_on_main_path(std::vector<int>{0, 2}) == 1);
    CHECK(n_on_main_path(std::vector<int>{1}) == 0);
}

TEST(limits_drop_the_last_nodes) {
    const SampledDraft draft = draft_of({1, 2, 3}, {{0, {4}}, {0, {5, 6}}, {2, {7}}});
    const auto size = [&](const Tree::Limits& limits) {
        Tree tree;
        tree.add(draft, limits);
        return tree.size();
    };
    CHECK(size(kWide) == 7);
    CHECK(size({.nodes = 2, .leaves = 9, .siblings = 9}) == 2);
    CHECK(size({.nodes = 9, .leaves = 9, .siblings = 1}) == 3);
    CHECK(size({.nodes = 9, .leaves = 9, .siblings = 2}) == 5);
    CHECK(size({.nodes = 9, .leaves = 2, .siblings = 9}) == 4);
    CHECK(size({.nodes = 0}) == 0);
}

TEST(truncated_and_malformed_branches_are_recognised) {
    SampledDraft draft = draft_of({1, 2, 3}, {{0, {4}}, {2, {5, 6}}});
    CHECK(draft.valid());
    draft.truncate(2);
    CHECK(draft.size() == 2);
    CHECK(draft.branches.size() == 1);
    draft.branches[0].depth = 3;
    CHECK(!draft.valid());
    draft.branches[0] = {.token = 4, .follows = true};
    CHECK(!draft.valid());
}
