#pragma once

#include <optional>

namespace specllama {

// Seconds since an arbitrary time: of the clock, and of the processors that this process may use.
struct ProcessorTimes {
    double clock = 0;
    double idle = 0;  // of all processors together
    double total = 0;
    double own = 0;  // used by this process
};

// None: not available on this system.
std::optional<ProcessorTimes> processor_times();

}  // namespace specllama
