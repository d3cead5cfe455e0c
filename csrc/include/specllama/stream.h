#pragma once

#include <memory>
#include <string>
#include <vector>

#include "specllama/stats.h"
#include "specllama/trace.h"
#include "specllama/types.h"

namespace specllama {

class Scheduler;
class Sequence;

// One generation, advanced by its reader. Made by Session::start; may outlive the session.
//
//     Stream stream = session.start(prompt, options);
//     std::vector<Chunk> chunks;
//     while (stream.step(chunks))
//         for (const Chunk& chunk : chunks) std::cout << chunk.text;
//
// A stream may be left unread or destroyed at any point; the session stays usable.
class Stream {
 public:
    Stream(Stream&&) noexcept;
    Stream& operator=(Stream&&) noexcept;
    ~Stream();

    // Replaces `chunks` by the new ones; if there are none yet, runs a step of the session first.
    // Returns false once all were returned. Throws Busy (see Session); Closed if the session was
    // closed or began another generation before this one was finished; and the DecodeError that
    // ended the generation, once.
    bool step(std::vector<Chunk>& chunks);

    // The same without a step: returns the chunks of other calls' steps. Waits for working calls.
    bool take(std::vector<Chunk>& chunks);

    // Ends the generation now or, if another thread is in a step, after that step. Text held back
    // until then is returned next. Does nothing if the generation has already ended. Never waits
    // for a step, and is safe from any thread.
    void cancel();

    // Any thread may call these, also during a step.

    bool done() const;
    FinishReason finish_reason() const;
    // The stop string that ended it; "" if none did.
    std::string stop_string() const;
    // Whether the prompt is still being decoded, and how many tokens the KV memory holds so far,
    // reused ones included.
    bool in_prompt() const;
    int n_prefilled() const;
    // Everything generated so far, including what `step` has not returned yet.
    std::vector<Token> tokens() const;
    std::string text() const;
    // One per token, if requested.
    std::vector<TokenLogprobs> logprobs() const;
    Stats stats() const;
    // One entry per round, if requested.
    std::vector<RoundTrace> trace() const;

 private:
    friend class Session;
    Stream(std::shared_ptr<Scheduler> scheduler, std::shared_ptr<Sequence> sequence);

    std::shared_ptr<Scheduler> scheduler_;
    std::shared_ptr<Sequence> sequence_;
};

}  // namespace specllama
