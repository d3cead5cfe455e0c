#pragma once

#include <optional>

#include "system/processor_times.h"

namespace specllama {

// Estimates how many processors other programs leave free. With more threads than that, each decode
// waits for a thread that does not run.
class FreeProcessors {
 public:
    // Learns from the current times.
    void observe(const ProcessorTimes& times);

    // Threads for a decode, at most `most`: one for each free processor, but at least half of
    // `most`. `most` if nothing is known.
    int threads(int most) const;

 private:
    std::optional<ProcessorTimes> last_;
    // Free processors in the last two intervals. The smaller number counts: a new program is
    // noticed at once, and a program that pauses does not count as ended.
    std::optional<double> now_;
    std::optional<double> before_;
};

// Threads for a decode now, at most `most`. Reads the system's counters a few times per second.
// Thread-safe.
int free_threads(int most);

}  // namespace specllama
