#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "specllama/error.h"

namespace specllama {

// The one way into a session. Every call that works (begins a generation, makes a step, searches,
// saves, loads, closes) holds this lock while it does, and gets it in turn: first come, first
// served. So does a call that reads what a step changes.
//
// It is a lock, and not a queue of jobs with a thread of its own, because a stream is pulled in its
// reader's thread: handing each round over to another thread, and its chunks back, takes 30 us more
// of the processor, a tenth of a round of the bundled model, and Ctrl-C would have to be handed
// over, too. A queue of requests is built on top of this (in Python): its thread is one caller
// among others, which comes back for each step. A turn is one step, so a call waits for about one
// step of the others; only a beam search is one turn as a whole.
//
// A drafter runs inside the turn of the call that asks it, so a call of its own would wait for
// itself: lock() throws Busy in that thread. Nothing else is refused.
//
// Meets the standard's Lockable: use it with std::scoped_lock and std::unique_lock.
class SessionLock {
 public:
    void lock() {
        check_not_held();
        std::unique_lock guard(mutex_);
        const std::uint64_t turn = next_++;
        changed_.wait(guard, [&] { return turn == current_; });
        holder_ = std::this_thread::get_id();
    }

    // Never waits: fails if another call has the lock or waits for it.
    bool try_lock() {
        const std::scoped_lock guard(mutex_);
        if (next_ != current_) return false;
        ++next_;
        holder_ = std::this_thread::get_id();
        return true;
    }

    void unlock() {
        {
            const std::scoped_lock guard(mutex_);
            holder_ = std::thread::id();
            ++current_;
        }
        changed_.notify_all();
    }

    // Whether the calling thread has the lock: it is then in a drafter that is being asked.
    bool held() const { return holder_ == std::this_thread::get_id(); }

    void check_not_held() const {
        if (held()) throw Busy("A drafter called its own session, which waits for that drafter.");
    }

 private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t current_ = 0;  // the turn that has the lock, or will have it next
    std::uint64_t next_ = 0;     // the turn of the next call that comes
    std::atomic<std::thread::id> holder_;
};

}  // namespace specllama
