#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "specllama/error.h"

namespace specllama {

// Lets one call at a time work in a session.
//
// A working call enters in its turn, first come, first served (Policy::queue), or throws Busy while
// another call works (Policy::refuse). If it comes from the drafter that the session is asking, it
// would wait for itself: it always throws Busy. No call is refused because of a brief one, which
// works for microseconds or ends the session, or because of calls that await_present() names. A
// looking call, which is as short, waits until no call works; a working call waits until no call
// looks.
class Gate {
 public:
    // What a working call does while another one works.
    enum class Policy { refuse, queue };

    explicit Gate(Policy policy) : policy_(policy) {}
    Policy policy() const { return policy_; }

    class Work {
     public:
        // may_enter() may throw, to refuse the call. With Policy::refuse it runs while no call
        // works; with Policy::queue one may, so it must not read what working calls change.
        template <typename MayEnter>
        Work(Gate& gate, Policy policy, MayEnter may_enter) : gate_(gate) {
            std::unique_lock lock(gate_.mutex_);
            gate_.check_free(lock, policy);
            may_enter();
            gate_.enter(lock);
        }
        template <typename MayEnter>
        Work(Gate& gate, MayEnter may_enter) : Work(gate, gate.policy_, may_enter) {}
        explicit Work(Gate& gate) : Work(gate, [] {}) {}
        // With another policy than the gate's.
        Work(Gate& gate, Policy policy) : Work(gate, policy, [] {}) {}
        ~Work() {
            const std::lock_guard lock(gate_.mutex_);
            gate_.leave();
        }
        Work(const Work&) = delete;
        Work& operator=(const Work&) = delete;

     private:
        Gate& gate_;
    };

    class Brief {
     public:
        // Enters in its turn.
        explicit Brief(Gate& gate) : Brief(gate, Policy::queue) {}
        // Enters as a working call of this policy does.
        Brief(Gate& gate, Policy policy) : gate_(gate) {
            std::unique_lock lock(gate_.mutex_);
            gate_.check_free(lock, policy);
            enter(lock);
        }
        // Enters if no call works or waits to work; entered() tells.
        Brief(Gate& gate, std::try_to_lock_t) : gate_(gate) {
            std::unique_lock lock(gate_.mutex_);
            if (gate_.n_queued_ == 0) enter(lock);
        }
        ~Brief() {
            if (!entered_) return;
            const std::lock_guard lock(gate_.mutex_);
            --gate_.n_brief_;
            gate_.leave();
        }
        Brief(const Brief&) = delete;
        Brief& operator=(const Brief&) = delete;

        bool entered() const { return entered_; }

     private:
        void enter(std::unique_lock<std::mutex>& lock) {
            ++gate_.n_brief_;
            gate_.enter(lock);
            entered_ = true;
        }

        Gate& gate_;
        bool entered_ = false;
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

    // Has other calls wait until all that work or wait to work now have left.
    void await_present() {
        const std::lock_guard lock(mutex_);
        awaited_ = next_turn_;
    }

    // Whether the calling thread is the one that works: its call then comes from a drafter and must
    // not wait.
    bool entered() {
        const std::lock_guard lock(mutex_);
        return worker_ == std::this_thread::get_id();
    }

 private:
    // Waits with Policy::refuse while no call is to be refused because of those that work or wait
    // to.
    void check_free(std::unique_lock<std::mutex>& lock, Policy policy) {
        const bool from_drafter = worker_ == std::this_thread::get_id();
        const bool refuses = policy == Policy::refuse;
        if (refuses && !from_drafter)
            changed_.wait(
                lock, [&] { return turn_ >= awaited_ && (n_brief_ == 0 || n_queued_ > n_brief_); });
        if (from_drafter || (refuses && n_queued_ > 0))
            throw Busy(
                "The session is in use by another thread, or by its own drafter; use one session "
                "per thread, or wait.");
    }

    void enter(std::unique_lock<std::mutex>& lock) {
        const std::uint64_t turn = next_turn_++;
        ++n_queued_;
        changed_.wait(lock, [&] { return turn == turn_ && n_looking_ == 0; });
        worker_ = std::this_thread::get_id();
    }

    void leave() {
        worker_ = {};
        --n_queued_;
        ++turn_;
        changed_.notify_all();
    }

    const Policy policy_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::thread::id worker_;
    std::uint64_t turn_ = 0;       // of the call that works, or else of the next that will
    std::uint64_t next_turn_ = 0;  // for the next call that comes to work
    std::uint64_t awaited_ = 0;    // the turn before which no call is refused
    int n_queued_ = 0;             // calls that work or wait to work
    int n_brief_ = 0;              // of these, the brief ones
    int n_looking_ = 0;            // calls that look or wait to look
};

}  // namespace specllama
