#pragma once

#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "specllama/session_options.h"

namespace specllama {

// Carries a progress function through llama.cpp while it loads a file, and keeps what the function
// throws: no exception may pass through llama.cpp. Both functions must outlive it.
class LoadProgress {
 public:
    // on_begin: called at llama.cpp's first report, before any weight is copied.
    explicit LoadProgress(
        const ProgressFunction& function, std::function<void()> on_begin = [] {})
        : function_(function), on_begin_(std::move(on_begin)) {}

    // What llama.cpp calls; self: a LoadProgress. False: it is to stop.
    static bool call(float fraction, void* self);

    // Throws what the function threw, or Interrupted if it ended the loading of the file.
    void check(const std::string& path) const;

 private:
    const ProgressFunction& function_;
    std::function<void()> on_begin_;
    bool begun_ = false;
    bool cancelled_ = false;
    std::exception_ptr thrown_;
};

}  // namespace specllama
