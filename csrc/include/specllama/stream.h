#pragma once

#include <memory>
#include <string>
#include <vector>

#include "specllama/draft.h"
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
// A stream that is not read to its end, destroyed or not, leaves the session in good order.
class Stream {
 public:
    Stream(Stream&&) noexcept;
    Stream& operator=(Stream&&) noexcept;
    ~Stream();

    // Replaces `chunks` by what became certain, after a step of the session if nothing has yet.
    // False once everything has been given. Throws Busy, Closed when the session was closed or
    // began another generation before this one was finished, and the DecodeError that ended it,
    // once.
    bool step(std::vector<Chunk>& chunks);

    // The same without a step: what others' steps have brought.
    bool take(std::vector<Chunk>& chunks);

    // Leaves a draft by somebody outside: what may follow the first n_before tokens of the text,
    // prompt included. It takes the place of the one before. A paced generation goes on by a round,
    // which verifies it, of its branches those that there is room for (see Session::most_guesses);
    // any other has it among its drafts for as long as its text takes a way that it foresees. Of
    // the evidence only Evidence::confidence counts: how likely each token is right when those
    // before it are, 0 to 1. Safe from any thread, and waits for nobody; nothing happens when the
    // generation is over. Throws InvalidArgument where the session takes no such drafts, for ids
    // that are no tokens, and for branches that leave the trunk where there is none.
    void offer(int n_before, const Draft& draft);

    // Whether a paced generation waits for a draft. Steps pass it over then, and it has nothing new
    // to give. From the thread that steps.
    bool waits() const;

    // Ends the generation where it is, or, if another thread is in a step, after that; what was
    // held back until then is given next. Nothing happens when it is over already. Waits for
    // nobody, and is safe from any thread.
    void cancel();

    // These may be called from any thread, also while another one steps.

    bool done() const;
    FinishReason finish_reason() const;
    // The stop string that ended it; "" if none has.
    std::string stop_string() const;
    // Whether the prompt is still being decoded, and how many of its tokens have been, those reused
    // included.
    bool in_prompt() const;
    int n_prefilled() const;
    // What has been generated so far, also what `step` still holds back.
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
