#pragma once

#include <chrono>

namespace specllama {

// Adds the time between its construction and its destruction to a number of seconds.
class Timer {
 public:
    explicit Timer(double& seconds) : seconds_(seconds), start_(Clock::now()) {}
    ~Timer() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

 private:
    using Clock = std::chrono::steady_clock;

    double& seconds_;
    Clock::time_point start_;
};

}  // namespace specllama
