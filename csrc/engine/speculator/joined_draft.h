#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "draft/sampled_draft.h"
#include "draft/tree.h"
#include "plan/round_plan.h"
#include "specllama/types.h"

namespace specllama {

// A draft joined with the other drafts for the same text, as a tree to choose from. The draft's
// main path comes first, then the alternatives.
struct JoinedDraft {
    Tree tree;
    std::vector<Alternative> alternatives;  // [i]: node i of those after the main path

    // Joins the drafts, with drafts[own] as the main path; empty if that one is empty. A draft with
    // drawn tokens is not joined with others, because the tree's shape must not depend on which
    // tokens were drawn.
    void join(std::span<const SampledDraft* const> drafts, std::size_t own,
              const Tree::Limits& limits);

    // Sets Alternative::right by the target's tokens, for the alternatives that these judge: those
    // whose earlier siblings were all wrong.
    void judge(TokenSpan target_tokens);
};

}  // namespace specllama
