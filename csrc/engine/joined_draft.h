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
class JoinedDraft {
 public:
    // Of these drafts drafts[own] makes the trunk; nothing, if that one is empty. Where tokens were
    // drawn the shape must not depend on which: nobody else's come beside those, nor they beside
    // others.
    void join(std::span<const Draft* const> drafts, std::size_t own, const Tree::Limits& limits);

    // The target has said these tokens: what each side was heard about, and whether it was right.
    // Of siblings each is heard about once its elders were wrong.
    void judge(TokenSpan heard);

    const Tree& tree() const { return tree_; }
    // [i]: of node i behind the trunk. Valid until the next join.
    std::span<const Side> sides() const { return sides_; }

 private:
    Tree tree_;
    std::vector<Side> sides_;
};

}  // namespace specllama
