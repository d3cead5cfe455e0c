#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "engine/sequence.h"
#include "llama/context.h"
#include "llama/model.h"
#include "specllama/config.h"
#include "specllama/types.h"

namespace specllama {

// What a session and its streams share.
class SessionState {
 public:
    SessionState(const SessionOptions& options, std::shared_ptr<Drafter> drafter);

    // The three, or Closed.
    const Model& model() const;
    Context& context() const;
    Engine& engine() const;

    bool closed() const { return !engine_; }
    void close();

    // Ends the unfinished generation, if any, and begins one.
    std::shared_ptr<Sequence> start(TokenSpan prompt, const GenerateOptions& options);
    bool step(Sequence& sequence, std::vector<Chunk>& chunks);
    void cancel(Sequence& sequence);

 private:
    void retire();

    // Held while a call is inside; a second one throws Busy.
    std::atomic_flag inside_ = ATOMIC_FLAG_INIT;
    std::shared_ptr<const Model> model_;
    std::unique_ptr<Context> context_;
    std::unique_ptr<Engine> engine_;
    // The unfinished generation, and the thread that began it.
    std::shared_ptr<Sequence> active_;
    std::thread::id owner_;
    // What the KV memory holds when no generation is active.
    std::vector<Token> cached_;

    friend class Inside;
};

}  // namespace specllama
