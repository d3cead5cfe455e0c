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

// One generation, pulled by its reader. Made by Session::start; may outlive the session.
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

    // Replaces `chunks` by those that became certain, after a step of the session if there are none
    // yet. Returns false once everything has been given. Throws Busy (see Session); Closed if the
    // session was closed or began another generation before this one was finished; and the
    // DecodeError that ended the generation, once.
    bool step(std::vector<Chunk>& chunks);

    // The same without a step: gives what other calls' steps have brought. Waits for working calls.
    bool take(std::vector<Chunk>& chunks);

    // Ends the generation now or, if another thread is in a step, after that step. What was held
    // back until then is given next. Does nothing if the generation is over already. Never waits
    // for a step, and is safe from any thread.
    void cancel();

    // These may be called from any thread, also while another one steps.

    bool done() const;
    FinishReason finish_reason() const;
    // The stop string that ended it; "" if none has.
    std::string stop_string() const;
    // Whether the prompt is still being decoded, and how many tokens the KV memory holds so far,
    // reused ones included.
    bool in_prompt() const;
    int n_prefilled() const;
    // Everything generated so far, including what `step` still holds back.
    std::vector<Token> tokens() const;
    std::string text() const;
    // One per token, if they were asked for.
    std::vector<TokenLogprobs> logprobs() const;
    Stats stats() const;
    // One entry per round, if they were asked for.
    std::vector<RoundTrace> trace() const;

 private:
    friend class Session;
    Stream(std::shared_ptr<Scheduler> scheduler, std::shared_ptr<Sequence> sequence);

    std::shared_ptr<Scheduler> scheduler_;
    std::shared_ptr<Sequence> sequence_;
};

}  // namespace specllama
