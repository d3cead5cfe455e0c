#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "draft/tree.h"
#include "plan/turn.h"
#include "specllama/draft.h"
#include "specllama/types.h"

namespace specllama {

// A draft joined with the other drafts for the same text, as a tree to choose from: first the whole
// trunk of the draft, then the sides.
struct JoinedDraft {
    Tree tree;
    std::vector<Side> sides;  // [i]: node i of those behind the trunk

    // Joins the drafts, with drafts[own] as the trunk; empty if that one is empty. A draft with
    // drawn tokens is joined with no other one, since the tree's shape must not depend on which
    // tokens were drawn.
    void join(std::span<const Draft* const> drafts, std::size_t own, const Tree::Limits& limits);

    // Sets Side::right by the tokens that the target has said, for the sides that these judge. A
    // side is judged only if its elder siblings were wrong.
    void judge(TokenSpan heard);
};

}  // namespace specllama
