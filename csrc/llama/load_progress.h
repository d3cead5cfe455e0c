#pragma once

#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "specllama/session_options.h"

namespace specllama {

// Passes a progress function to llama.cpp while it loads a file, and keeps the function's
// exception, because none may pass through llama.cpp. The progress function must outlive it.
class LoadProgress {
 public:
    // on_begin: called at llama.cpp's first report, before any weight is copied.
    explicit LoadProgress(
        const ProgressFunction& function, std::function<void()> on_begin = [] {})
        : function_(function), on_begin_(std::move(on_begin)) {}

    // The callback for llama.cpp; self: a LoadProgress. Returns false to stop.
    static bool call(float fraction, void* self);

    // Throws the function's exception, or Interrupted if it stopped the loading of the file.
    void check(const std::string& path) const;

 private:
    const ProgressFunction& function_;
    std::function<void()> on_begin_;
    bool begun_ = false;
    bool cancelled_ = false;
    std::exception_ptr thrown_;
};

}  // namespace specllama
