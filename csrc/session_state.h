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
#include "engine/slot_pool.h"
#include "llama/context.h"
#include "llama/model.h"
#include "plan/cost_curve.h"
#include "specllama/config.h"
#include "specllama/session.h"
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
    bool entered() { return gate_.entered(); }
    // The same as long as it is open.
    int n_ctx() const { return open().n_ctx_; }
    int n_threads() const { return open().n_threads_; }
    int n_seq() const { return open().n_seq_; }
    int n_free() const { return open().n_free_; }

    void close();

    void check(TokenSpan prompt, const GenerateOptions& options) const;
    std::shared_ptr<Sequence> start(TokenSpan prompt, const GenerateOptions& options);
    // One step for all that are active; false if none is.
    bool step();
    // The same, unless the sequence has chunks already; and these.
    bool step(Sequence& sequence, std::vector<Chunk>& chunks);
    bool take(Sequence& sequence, std::vector<Chunk>& chunks);
    void cancel(Sequence& sequence);

    // See Session.
    SavedState save();
    void load(const SavedState& saved);

    // Calls `read` while nothing changes the sequence.
    template <typename Read>
    auto look(Read read) {
        const Gate::Look look(gate_);
        return read();
    }

 private:
    const SessionState& open() const;
    // The calls below are made by who works.
    void enter(const std::shared_ptr<Sequence>& sequence, TokenSpan reference);
    [[noreturn]] void throw_taken() const;
    void advance();
    void take_ready(Sequence& sequence, std::vector<Chunk>& chunks);
    // Takes a sequence out of the engine; what the KV memory holds of it stays for the next.
    void leave(Sequence& sequence);
    // Those that are done, or abandoned.
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
    std::unique_ptr<SlotPool> slots_;
    int n_ctx_;
    int n_seq_;
    int n_threads_;
    bool exact_;
    std::string state_key_;
    // The unfinished generations; and, where there is but one at a time, the thread that began it.
    std::vector<std::shared_ptr<Sequence>> active_;
    std::thread::id owner_;
    std::atomic<int> n_free_;
    std::vector<Sequence*> stepping_;  // kept so that no step allocates
};

}  // namespace specllama
