#include "system/free_processors.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "system/clock.h"

namespace specllama {

namespace {

// Seconds between reads of the counters, which have steps of 10 ms.
constexpr double kInterval = 0.25;

}  // namespace

void FreeProcessors::observe(const ProcessorTimes& times) {
    const ProcessorTimes last = last_.value_or(times);
    last_ = times;
    const double seconds = times.clock - last.clock;
    if (seconds <= 0) return;
    // In some containers the counters do not advance.
    if (times.total - last.total < seconds / 2) {
        now_.reset();
        return;
    }
    before_ = now_;
    now_ = (times.idle - last.idle + times.own - last.own) / seconds;
}

int FreeProcessors::threads(int most) const {
    if (!now_) return most;
    const double free = std::min(*now_, before_.value_or(*now_));
    const int least = (most + 1) / 2;
    return static_cast<int>(std::lround(std::clamp<double>(free, least, most)));
}

int free_threads(int most) {
    static std::mutex mutex;
    static FreeProcessors processors;
    static std::optional<Stopwatch> looked;
    const std::lock_guard lock(mutex);
    if (!looked || looked->seconds() >= kInterval) {
        looked.emplace();
        if (const std::optional<ProcessorTimes> times = processor_times())
            processors.observe(*times);
    }
    return processors.threads(most);
}

}  // namespace specllama
