#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "specllama/error.h"

namespace specllama {

// Lets one call at a time into a session.
//
// Who comes to work does not wait for another's work, but gets Busy: where two threads, or a
// drafter and its session, are at cross purposes, waiting would hang. Who only comes to look, which
// is a matter of microseconds, waits until the work is done, and is waited for.
class Gate {
 public:
    class Work {
     public:
        // may_enter() is called when nobody works, and may throw.
        template <typename MayEnter>
        Work(Gate& gate, MayEnter may_enter) : gate_(gate) {
            std::unique_lock lock(gate_.mutex_);
            gate_.check_free();
            may_enter();
            gate_.changed_.wait(lock, [&] { return gate_.n_looking_ == 0; });
            gate_.check_free();
            gate_.worker_ = std::this_thread::get_id();
        }
        explicit Work(Gate& gate) : Work(gate, [] {}) {}
        ~Work() {
            const std::lock_guard lock(gate_.mutex_);
            gate_.worker_ = {};
            gate_.changed_.notify_all();
        }
        Work(const Work&) = delete;
        Work& operator=(const Work&) = delete;

     private:
        Gate& gate_;
    };

    class Look {
     public:
        explicit Look(Gate& gate) : gate_(gate) {
            std::unique_lock lock(gate_.mutex_);
            ++gate_.n_looking_;
            // A drafter may look at the session that is asking it.
            gate_.changed_.wait(lock, [&] {
                return gate_.worker_ == std::thread::id() ||
                       gate_.worker_ == std::this_thread::get_id();
            });
        }
        ~Look() {
            const std::lock_guard lock(gate_.mutex_);
            --gate_.n_looking_;
            gate_.changed_.notify_all();
        }
        Look(const Look&) = delete;
        Look& operator=(const Look&) = delete;

     private:
        Gate& gate_;
    };

 private:
    void check_free() const {
        if (worker_ != std::thread::id())
            throw Busy(
                "The session is in use by another thread, or by its own drafter; use one session "
                "per thread, or wait.");
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::thread::id worker_;
    int n_looking_ = 0;  // or waiting to
};

}  // namespace specllama
