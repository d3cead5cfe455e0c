#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "specllama/error.h"

namespace specllama {

// The lock of a session. Every call that works (begins a generation, makes a step, searches, saves,
// loads, closes) holds it, and so does a call that reads what a step changes. Calls get the lock in
// order of arrival.
//
// It is a lock, not a queue with a separate thread, because a stream is advanced in its reader's
// thread. Handing each round to another thread and its chunks back takes 30 us of processor time, a
// tenth of a round of the bundled model, and Ctrl-C would have to be handed over, too. A queue of
// requests is built on top (in Python): its thread is one caller among others and takes the lock
// for each step. A turn is one step, so a call waits for about one step of the others; only a beam
// search is a single turn.
//
// A drafter runs inside the turn of the call that asks it. A working call from the drafter would
// wait for itself, so lock() throws Busy in that thread. Nothing else is refused.
//
// Meets the Lockable requirements: use it with std::scoped_lock and std::unique_lock.
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

    // Whether the calling thread has the lock; it is then in a drafter's function.
    bool held() const { return holder_ == std::this_thread::get_id(); }

    void check_not_held() const {
        if (held()) throw Busy("A drafter called its own session, which waits for that drafter.");
    }

 private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t current_ = 0;  // the turn that has the lock, or will have it next
    std::uint64_t next_ = 0;     // the turn of the next call to arrive
    std::atomic<std::thread::id> holder_;
};

}  // namespace specllama
