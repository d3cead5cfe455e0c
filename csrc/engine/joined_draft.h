#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "draft/tree.h"
#include "plan/turn.h"
#include "specllama/draft.h"
#include "specllama/types.h"

namespace specllama {

// A draft and what others have beside it, as a tree to choose from: the draft's trunk comes first,
// whole, then the sides.
struct JoinedDraft {
    Tree tree;
    std::vector<Side> sides;  // [i]: of node i behind the trunk

    // Of these drafts drafts[own] makes the trunk; nothing, if that one is empty. Where tokens were
    // drawn the shape must not depend on which: nobody else's come beside those, nor they beside
    // others.
    void join(std::span<const Draft* const> drafts, std::size_t own, const Tree::Limits& limits);

    // The target has said these tokens: which of the sides were right, of those that it judged. Of
    // siblings each is judged once its elders were wrong.
    void judge(TokenSpan heard);
};

}  // namespace specllama
