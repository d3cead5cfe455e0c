#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "draft/core_drafter.h"
#include "draft/history/history.h"
#include "draft/ngram/copy_cursor.h"

namespace specllama {

// Drafts what followed the end of a sequence in earlier requests of the same owner. A copy goes on
// as long as the sequence follows it; where it broke off, a place near there is preferred to others
// whose match is not longer. A request without an owner gets no drafts.
class HistoryDrafter final : public CoreDrafter {
 public:
    // Whoever adds texts to the history does so between rounds.
    explicit HistoryDrafter(std::shared_ptr<const History> history)
        : history_(std::move(history)) {}

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<DraftRequest> requests) override;
    void end(SequenceId sequence) override;

 private:
    struct Copy {
        CopyCursor<History> cursor;
        std::size_t n_followed = 0;  // tokens of the sequence
    };

    Match next(Copy& copy, const DraftRequest& request) const;

    std::shared_ptr<const History> history_;
    std::map<SequenceId, Copy> copies_;
    std::vector<Token> text_;
};

}  // namespace specllama
