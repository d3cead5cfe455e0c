#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/speculator/joined_draft.h"
#include "engine/speculator/speculator.h"

namespace specllama {

// Verifies drafts of a fixed length as they come; or, without drafters, nothing.
//
// All drafters continue from the tokens that a grammar forces. The draft is that of the drafter
// that takes a step for each token, if there is one with a draft, or else that of the first drafter
// that has one. Next to such a drafter, the others are asked only if drafts are trees: their drafts
// are then alternatives to its own, or take its place if it has none.
class FixedSpeculator final : public Speculator {
 public:
    // cost: of the target's decodes, learned for clients that plan; none: it is not learned.
    FixedSpeculator(Drafters drafters, int longest, const Tree::Limits& limits,
                    const Vocabulary& vocab, std::optional<CostCurve> cost);

    std::vector<CostCurve*> curves() override;
    void observe_decode(const Decode& decode) override;

 private:
    void ask_all(std::span<Sequence* const> sequences) override;
    void choose(std::size_t i);

    std::optional<CostCurve> cost_;
    JoinedDraft joined_;
};

}  // namespace specllama
