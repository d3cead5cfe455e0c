#pragma once

#include <span>

#include "engine/sequence.h"
#include "system/clock.h"

namespace specllama {

// Adds the time of a step to the total of each request in it.
class SharedTimer {
 public:
    explicit SharedTimer(std::span<Sequence* const> sequences) : sequences_(sequences) {}
    ~SharedTimer() {
        const double seconds = watch_.seconds();
        for (Sequence* sequence : sequences_) sequence->stats.seconds.total += seconds;
    }
    SharedTimer(const SharedTimer&) = delete;
    SharedTimer& operator=(const SharedTimer&) = delete;

 private:
    std::span<Sequence* const> sequences_;
    Stopwatch watch_;
};

}  // namespace specllama
