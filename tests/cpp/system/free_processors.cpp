// The number of decoding threads, by the system's counters of other programs.

#include "system/free_processors.h"

#include <optional>

#include "check.h"

using namespace specllama;

namespace {

// The counters of a machine with two processors and other running programs.
class Machine {
 public:
    // others, own: processors used for a second. Returns the chosen number of threads, up to
    // `most`.
    int second(double others, double own, int most = 2) {
        times_.clock += 1;
        times_.total += 2;
        times_.idle += 2 - others - own;
        times_.own += own;
        free_.observe(times_);
        return free_.threads(most);
    }
    FreeProcessors& free() { return free_; }

 private:
    ProcessorTimes times_;
    FreeProcessors free_;
};

}  // namespace

TEST(all_threads_are_used_before_the_counters_are_read) {
    FreeProcessors free;
    CHECK(free.threads(7) == 7);
    free.observe({});
    CHECK(free.threads(7) == 7);
}

TEST(a_quiet_machine_keeps_all_threads) {
    Machine machine;
    machine.second(0, 0);
    for (int i = 0; i < 3; ++i) {
        CHECK(machine.second(0.1, 1.8) == 2);
        CHECK(machine.second(0.1, 0) == 2);
    }
}

TEST(a_busy_program_takes_a_thread_at_once_and_frees_it_later) {
    Machine machine;
    machine.second(0, 2);
    CHECK(machine.second(0, 2) == 2);
    CHECK(machine.second(0.8, 1.2) == 1);
    CHECK(machine.second(1, 1) == 1);
    CHECK(machine.second(0, 1) == 1);
    CHECK(machine.second(0, 1) == 2);
}

TEST(at_least_half_of_the_threads_remain) {
    Machine machine;
    machine.second(2, 0);
    machine.second(2, 0);
    CHECK(machine.second(2, 0, 1) == 1);
    CHECK(machine.second(2, 0, 2) == 1);
    CHECK(machine.second(2, 0, 7) == 4);
    CHECK(machine.second(2, 0, 8) == 4);
}

TEST(counters_that_do_not_change_are_ignored) {
    FreeProcessors free;
    ProcessorTimes times;
    for (int i = 0; i < 3; ++i) {
        times.clock += 1;
        times.own += 0.5;
        free.observe(times);
        CHECK(free.threads(2) == 2);
    }
}

TEST(the_counters_of_this_system_are_valid) {
    const std::optional<ProcessorTimes> times = processor_times();
    if (!times) return;
    CHECK(times->total > 0);
    CHECK(times->idle >= 0);
    CHECK(times->own > 0);
    const int threads = free_threads(3);
    CHECK(threads >= 2);
    CHECK(threads <= 3);
}
