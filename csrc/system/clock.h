#pragma once

#include <chrono>

namespace specllama {

// Seconds since its construction.
class Stopwatch {
 public:
    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
    using Clock = std::chrono::steady_clock;

    Clock::time_point start_ = Clock::now();
};

// Adds the time between construction and destruction to a number of seconds.
class Timer {
 public:
    explicit Timer(double& seconds) : seconds_(seconds) {}
    ~Timer() { seconds_ += watch_.seconds(); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

 private:
    double& seconds_;
    Stopwatch watch_;
};

}  // namespace specllama
