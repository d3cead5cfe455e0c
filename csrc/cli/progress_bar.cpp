#include "cli/progress_bar.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace specllama::cli {

ProgressBar::ProgressBar(std::string what, double delay)
    : what_(std::move(what)),
      delay_(delay),
      start_(std::chrono::steady_clock::now()),
      terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::show(double fraction) {
    constexpr int kWidth = 32;
    const int percent = static_cast<int>(fraction * 100);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    if (!terminal_ || elapsed.count() < delay_ || percent == shown_) return;
    shown_ = percent;
    std::string bar(kWidth, '.');
    bar.replace(0, kWidth * percent / 100, kWidth * percent / 100, '#');
    std::fprintf(stderr, "\r%s [%s] %3d %%", what_.c_str(), bar.c_str(), percent);
    std::fflush(stderr);
}

void ProgressBar::clear() {
    if (shown_ < 0) return;
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
    shown_ = -1;
}

}  // namespace specllama::cli
