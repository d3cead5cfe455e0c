#include "draft/history/history_drafter.h"

#include <algorithm>

namespace specllama {

void HistoryDrafter::begin(SequenceId sequence, TokenSpan prompt, TokenSpan /*reference*/) {
    copies_[sequence] = {.cursor = {}, .n_followed = prompt.size()};
}

void HistoryDrafter::end(SequenceId sequence) { copies_.erase(sequence); }

void HistoryDrafter::propose(std::span<DraftRequest> requests) {
    for (DraftRequest& request : requests) {
        const int n_most = request.max_tokens - request.draft.size();
        if (request.memory_owner < 0 || n_most == 0) continue;
        const Match match =
            request.draft.empty()
                ? next(copies_.at(request.sequence), request)
                : history_->find(request.memory_owner, request.with_draft(text_)).match;
        const int n = std::min(n_most, static_cast<int>(match.continuation.size()));
        for (int i = 0; i < n; ++i)
            request.draft.push(match.token(i), {Source::history, match.length + i});
    }
}

// The next tokens of the sequence's copy, or of a new copy from the best place.
Match HistoryDrafter::next(Copy& copy, const DraftRequest& request) const {
    for (; copy.n_followed < request.tokens.size(); ++copy.n_followed)
        copy.cursor.step(request.tokens[copy.n_followed]);
    if (const Match match = copy.cursor.match(); match.length > 0) return match;
    const History::Found found = history_->find(request.memory_owner, request.tokens);
    if (!copy.cursor.resume_near(request.tokens, found.match.length) && found.match.length > 0)
        copy.cursor.start(*history_, found.place, found.match.length);
    return copy.cursor.match();
}

}  // namespace specllama
