#pragma once

#include <optional>

namespace specllama {

// Seconds since some moment: of the clock, and of the processors that this process may use.
struct ProcessorTimes {
    double clock = 0;
    double idle = 0;  // of all of them together
    double total = 0;
    double own = 0;  // that this process has taken
};

// None: the system does not state them.
std::optional<ProcessorTimes> processor_times();

}  // namespace specllama
