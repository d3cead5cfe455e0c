#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/gate.h"
#include "engine/sequence.h"
#include "llama/context.h"
#include "llama/model.h"
#include "plan/cost_curve.h"
#include "specllama/config.h"
#include "specllama/types.h"

namespace specllama {

// What a session and its streams share.
class SessionState {
 public:
    SessionState(SessionOptions options, std::shared_ptr<Drafter> drafter);

    ~SessionState();
    SessionState(const SessionState&) = delete;
    SessionState& operator=(const SessionState&) = delete;

    // Throws Closed. Safe from any thread; the model lives as long as it is held.
    std::shared_ptr<const Model> model() const;
    bool closed() const { return closed_; }
    // The same as long as it is open.
    int n_ctx() const { return open().n_ctx_; }
    int n_threads() const { return open().n_threads_; }

    void close();

    // Ends the unfinished generation, if any, and begins one.
    std::shared_ptr<Sequence> start(TokenSpan prompt, const GenerateOptions& options);
    bool step(Sequence& sequence, std::vector<Chunk>& chunks);
    void cancel(Sequence& sequence);

    // Calls `read` while nothing changes the sequence.
    template <typename Read>
    auto look(Read read) {
        const Gate::Look look(gate_);
        return read();
    }

 private:
    const SessionState& open() const;
    void retire();
    void keep_curves();

    Gate gate_;
    std::atomic<bool> closed_ = false;
    mutable std::mutex model_mutex_;
    std::shared_ptr<const Model> model_;
    std::unique_ptr<Context> context_;
    std::unique_ptr<Engine> engine_;
    // What the planner has learned of the target and the draft model, and under which names it is
    // kept.
    std::vector<std::pair<std::string, CostCurve*>> curves_;
    int n_ctx_;
    int n_threads_;
    bool exact_;
    // The unfinished generation, and the thread that began it.
    std::shared_ptr<Sequence> active_;
    std::thread::id owner_;
    // What the KV memory holds when no generation is active.
    std::vector<Token> cached_;
};

}  // namespace specllama
