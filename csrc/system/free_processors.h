#pragma once

#include <optional>

#include "system/processor_times.h"

namespace specllama {

// How many processors other programs leave to this process. A program that has more threads at work
// than that waits in each decode for a thread that does not run.
class FreeProcessors {
 public:
    // Learns from the times of this moment.
    void observe(const ProcessorTimes& times);

    // Threads to decode with instead of `most`: one for each free processor, but at least half of
    // them. `most` as long as nothing is known.
    int threads(int most) const;

 private:
    std::optional<ProcessorTimes> last_;
    // Free in the last two intervals. The smaller one counts: a program that has just begun is
    // noticed at once, and one that pauses is not taken for ended.
    std::optional<double> now_;
    std::optional<double> before_;
};

// Threads to decode with at this moment, at most `most`. It looks at the system's counters a few
// times in a second. Any thread may call it.
int free_threads(int most);

}  // namespace specllama
