#pragma once

#include <chrono>
#include <string>

namespace specllama::cli {

// A bar on stderr. It appears after `delay` seconds and disappears at the end. If stderr is not a
// terminal, nothing is shown.
class ProgressBar {
 public:
    ProgressBar(std::string what, double delay);
    ~ProgressBar();
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

    // fraction: 0 to 1
    void show(double fraction);
    void clear();

 private:
    std::string what_;
    double delay_;
    std::chrono::steady_clock::time_point start_;
    bool terminal_;
    int shown_ = -1;  // percent on the screen; -1: no bar
};

}  // namespace specllama::cli
