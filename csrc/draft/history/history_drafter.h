#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "draft/core_drafter.h"
#include "draft/history/history.h"
#include "draft/ngram/copy_cursor.h"

namespace specllama {

// Drafts the continuation of the longest match in earlier requests of the same owner. A copy
// continues while the sequence agrees with it. After it broke off, a place near there is preferred
// to other places unless their match is longer. A request without an owner gets no drafts.
class HistoryDrafter final : public CoreDrafter {
 public:
    // Texts may be added to the history only between rounds.
    explicit HistoryDrafter(std::shared_ptr<const History> history)
        : history_(std::move(history)) {}

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<DraftRequest> requests) override;
    void end(SequenceId sequence) override;

 private:
    struct Copy {
        CopyCursor<History> cursor;
        std::size_t n_followed = 0;  // tokens of the sequence so far
    };

    Match next(Copy& copy, const DraftRequest& request) const;

    std::shared_ptr<const History> history_;
    std::map<SequenceId, Copy> copies_;
    std::vector<Token> text_;
};

}  // namespace specllama
