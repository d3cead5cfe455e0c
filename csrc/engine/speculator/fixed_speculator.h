#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/speculator/joined_draft.h"
#include "engine/speculator/speculator.h"

namespace specllama {

// Verifies all drafted tokens, up to a fixed length. Without drafters it verifies nothing.
//
// All drafters continue from the tokens that a grammar forces. The draft is that of the drafter
// with a step cost, if it has one, otherwise that of the first drafter with a draft. With such a
// drafter, the others are asked only if drafts are trees: their drafts are then alternatives to its
// draft, or replace it if it has none.
class FixedSpeculator final : public Speculator {
 public:
    // cost: of the target's decodes, learned for clients that plan; nullopt: it is not learned.
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
