#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ggml-backend.h"

namespace specllama {

// Starts llama.cpp once per process and routes its log: warnings and errors to stderr, the rest
// only after set_verbose(true). Cheap to call again.
void ensure_backend();

// The log callback that ensure_backend() sets, for other libraries' logs.
ggml_log_callback log_callback();

// The CPU's buffer types for weights in the layout of special kernels, in the order in which
// llama.cpp tries them.
std::vector<ggml_backend_buffer_type_t> extra_buffer_types();
// Whether such a buffer type is for AMX.
bool is_amx(ggml_backend_buffer_type_t type);

// How to build llama.cpp again, with `flags` (if any) in the environment variable `variable`, as a
// part of a sentence.
std::string rebuild(const std::string& variable = "", const std::string& flags = "");

// Prints a notice of this library to stderr, like llama.cpp's warnings.
void warn(const std::string& notice);
// The same, only after set_verbose(true).
void inform(const std::string& notice);
// Whether set_verbose(true) was called: for notices that take time to find.
bool is_verbose();

// While it lives, llama.cpp's log on this thread goes to a function, too, piece by piece.
// Exceptions of the function pass through llama.cpp, so use it only for calls of llama.cpp that
// allow this.
class LogListener {
 public:
    explicit LogListener(std::function<void(const char*)> listener);
    ~LogListener();
    LogListener(const LogListener&) = delete;
    LogListener& operator=(const LogListener&) = delete;
};

// While it lives, collects llama.cpp's logged errors on this thread instead of printing them
// (unless set_verbose(true) was called): llama.cpp reports many failures only in its log.
class ErrorLog {
 public:
    // Whether llama.cpp's warnings on this thread go to stderr meanwhile, or are dropped.
    enum class Warnings { shown, dropped };

    explicit ErrorLog(Warnings warnings = Warnings::shown);
    ~ErrorLog();
    ErrorLog(const ErrorLog&) = delete;
    ErrorLog& operator=(const ErrorLog&) = delete;

    // Whether an error was logged.
    bool any() const { return !text_.empty(); }
    // The first error without the name of the function that logged it; "": there was none, or it is
    // the text of a standard library exception, which explains nothing.
    std::string first() const;
    // The same; if empty, a general message that the file cannot be loaded.
    std::string reason() const;
    bool drops_warnings() const { return warnings_ == Warnings::dropped; }

 private:
    friend void append_error(const char* text);
    std::string text_;
    Warnings warnings_;
    ErrorLog* outer_;
};

}  // namespace specllama
