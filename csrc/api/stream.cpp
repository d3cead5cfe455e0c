#include "specllama/stream.h"

#include <utility>

#include "session/scheduler.h"
#include "specllama/error.h"

namespace specllama {

Stream::Stream(std::shared_ptr<Scheduler> scheduler, std::shared_ptr<Sequence> sequence)
    : scheduler_(std::move(scheduler)), sequence_(std::move(sequence)) {}

Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&& other) noexcept {
    const Stream before(std::move(*this));  // its generation ends on return
    scheduler_ = std::move(other.scheduler_);
    sequence_ = std::move(other.sequence_);
    return *this;
}

Stream::~Stream() {
    if (!scheduler_) return;  // moved from
    try {
        cancel();
    } catch (...) {
        // An exception from Drafter::end has no caller to go to.
    }
}

bool Stream::step(std::vector<Chunk>& chunks) { return scheduler_->step(*sequence_, chunks); }

bool Stream::take(std::vector<Chunk>& chunks) { return scheduler_->take(*sequence_, chunks); }

void Stream::cancel() { scheduler_->cancel(*sequence_); }

bool Stream::done() const { return sequence_->all_taken(); }

bool Stream::in_prompt() const {
    return scheduler_->look([&] { return sequence_->in_prompt(); });
}

FinishReason Stream::finish_reason() const {
    return scheduler_->look([&] { return sequence_->finish_reason(); });
}

int Stream::n_prefilled() const {
    return scheduler_->look([&] { return sequence_->n_cached(); });
}

std::vector<Token> Stream::tokens() const {
    return scheduler_->look([&] {
        const TokenSpan tokens = sequence_->generated();
        return std::vector<Token>(tokens.begin(), tokens.end());
    });
}

std::string Stream::stop_string() const {
    return scheduler_->look([&] { return sequence_->text().stop_string(); });
}

std::string Stream::text() const {
    return scheduler_->look([&] { return sequence_->text().text(); });
}

std::vector<TokenLogprobs> Stream::logprobs() const {
    return scheduler_->look([&] { return sequence_->text().logprobs(); });
}

Stats Stream::stats() const {
    return scheduler_->look([&] { return sequence_->stats; });
}

std::vector<RoundTrace> Stream::trace() const {
    return scheduler_->look([&] { return sequence_->trace; });
}

}  // namespace specllama
