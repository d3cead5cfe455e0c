#include "specllama/stream.h"

#include <utility>

#include "session_state.h"
#include "specllama/error.h"

namespace specllama {

Stream::Stream(std::shared_ptr<SessionState> session, std::shared_ptr<Sequence> sequence)
    : session_(std::move(session)), sequence_(std::move(sequence)) {}

Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;

Stream::~Stream() {
    if (!session_) return;  // moved from
    try {
        cancel();
    } catch (const Busy&) {
        // Destroyed while another thread steps it; the next generation will end it.
    }
}

bool Stream::step(std::vector<Chunk>& chunks) { return session_->step(*sequence_, chunks); }

void Stream::cancel() { session_->cancel(*sequence_); }

bool Stream::done() const { return sequence_->all_taken(); }

FinishReason Stream::finish_reason() const { return sequence_->finish_reason(); }

int Stream::n_prefilled() const { return sequence_->n_cached(); }

TokenSpan Stream::tokens() const { return sequence_->generated(); }

std::string Stream::text() const { return sequence_->text(); }

const Stats& Stream::stats() const { return sequence_->stats; }

}  // namespace specllama
