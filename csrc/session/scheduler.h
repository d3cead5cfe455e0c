#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "constraint/constraints.h"
#include "engine/engine.h"
#include "engine/sequence.h"
#include "runtime/context.h"
#include "runtime/model.h"
#include "session/calibration.h"
#include "session/cost_cache.h"
#include "session/session_lock.h"
#include "session/session_parts.h"
#include "session/slot_pool.h"
#include "specllama/beam.h"
#include "specllama/generate_options.h"
#include "specllama/media.h"
#include "specllama/session.h"
#include "specllama/types.h"
#include "text/vocabulary.h"
#include "vision/vision.h"

namespace specllama {

// Schedules the work of a session: lets one thread at a time work (see SessionLock), gives requests
// their slots in the KV memory, and lets the engine advance all of them together. Shared by a
// session and its streams.
class Scheduler {
 public:
    explicit Scheduler(SessionParts parts);

    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    // Throws Closed. Safe from any thread; the vocabulary lives as long as the pointer.
    std::shared_ptr<const Vocabulary> vocabulary() const;
    bool closed() const { return closed_; }  // as soon as close() is called
    bool entered() { return lock_.held(); }
    // Both throw Closed.
    const SessionInfo& info() const { return open().info_; }
    int n_free() const { return open().n_free_; }

    void close();

    // Throws InvalidArgument if the session has no projector.
    MediaPrompt media_prompt(std::span<const PromptPart> parts) const;
    int n_encoded() const;
    void check(TokenSpan prompt, const MediaChunks& media, const GenerateOptions& options) const;
    std::shared_ptr<Sequence> start(TokenSpan prompt, const MediaChunks& media,
                                    const GenerateOptions& options);
    // Advances all unfinished sequences by a step of the engine. Returns false if there are none.
    bool step();
    // Both replace `chunks` by a sequence's new ones since the last call. If there are none, step()
    // first advances all sequences; take() never does. Both return false once all were returned.
    bool step(Sequence& sequence, std::vector<Chunk>& chunks);
    bool take(Sequence& sequence, std::vector<Chunk>& chunks);
    void cancel(Sequence& sequence);
    // See Session.
    std::vector<double> decode_seconds();

    // See Session.
    BeamResult beam_search(TokenSpan prompt, const BeamOptions& options,
                           const BetweenRounds& between);
    SavedState save(int slot);
    void load(const SavedState& saved, int slot);
    int erase(int slot);

    // Calls `read` while no other thread works, so that nothing changes the sequence.
    template <typename Read>
    auto look(Read read) {
        if (lock_.held()) return read();  // a drafter may read the session that calls it
        const std::scoped_lock lock(lock_);
        return read();
    }

 private:
    const Scheduler& open() const;
    std::shared_ptr<const Model> model() const;
    std::unique_ptr<Mask> make_mask(const SamplingOptions& options) const;
    void check_slot(int slot) const;
    // The calling thread of all below has lock_.
    void check_open() const;
    void add(const std::shared_ptr<Sequence>& sequence, TokenSpan reference);
    void check_free(int slot) const;
    bool advance();
    void take_ready(Sequence& sequence, std::vector<Chunk>& chunks);
    // Stores learned costs and remembered texts for later sessions, and releases the helper threads
    // of the calling thread, which closes the session.
    void shutdown();
    void store_history() const;
    // Keeps a sequence's text for later requests to draft from.
    void remember(const Sequence& sequence);
    // Takes a sequence out of the engine. Its KV memory stays for later requests, and its text is
    // remembered.
    void remove(Sequence& sequence);
    // Takes the sequences that are done or abandoned out of the engine.
    void reap_finished();

    SessionLock lock_;
    std::atomic<bool> closed_ = false;
    mutable Constraints constraints_;
    mutable std::mutex model_mutex_;  // of the next three
    std::shared_ptr<const Model> model_;
    std::shared_ptr<const Vocabulary> vocabulary_;
    std::shared_ptr<const Vision> vision_;
    std::unique_ptr<Context> context_;
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<BackgroundConversion> conversion_;
    CurveKeys curve_keys_;
    Calibration calibration_;
    std::shared_ptr<History> history_;
    std::optional<HistoryFile> history_file_;
    std::unique_ptr<SlotPool> slots_;
    ContextPlan context_plan_;
    const SessionInfo info_;
    // The process that opened it. A forked process has none of its threads.
    const pid_t process_ = getpid();
    bool exact_;
    std::optional<std::pair<int, int>> same_widths_;
    std::string state_key_;
    std::vector<std::shared_ptr<Sequence>> active_;  // unfinished, in the order of their start
    std::thread::id owner_;                          // thread that started the last of them
    std::atomic<int> n_free_;
    std::vector<Sequence*> stepping_;  // kept so that no step allocates
};

}  // namespace specllama
