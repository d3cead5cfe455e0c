#pragma once

#include <chrono>
#include <string>

namespace specllama::cli {

// A bar on stderr that appears only when its work takes longer than `delay` seconds, and vanishes
// at the end. Nothing where stderr is no terminal.
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
    int shown_ = -1;  // per cent on the screen
};

}  // namespace specllama::cli
