#pragma once

#include <string>
#include <vector>

#include "ggml-backend.h"

namespace specllama {

// Brings llama.cpp up once per process and routes its log: warnings and errors to stderr, the rest
// only when set_verbose(true) was called. Cheap to call again.
void ensure_backend();

// Where weights may lie on the CPU that are stored for special kernels, in the order in which
// llama.cpp tries them.
std::vector<ggml_backend_buffer_type_t> extra_buffer_types();
// Whether such a place is that of AMX's weights.
bool is_amx(ggml_backend_buffer_type_t type);

// How llama.cpp is built again, with flags in an environment variable if they are given: the part
// of a sentence.
std::string rebuild(const std::string& variable = "", const std::string& flags = "");

// Puts a notice of our own beside llama.cpp's warnings.
void warn(const std::string& notice);

// Gathers what llama.cpp logs as errors on this thread while it lives, instead of printing it:
// llama.cpp reports many failures only there.
class ErrorLog {
 public:
    // What llama.cpp warns of meanwhile goes to stderr, or nowhere.
    enum class Warnings { shown, dropped };

    explicit ErrorLog(Warnings warnings = Warnings::shown);
    ~ErrorLog();
    ErrorLog(const ErrorLog&) = delete;
    ErrorLog& operator=(const ErrorLog&) = delete;

    // Whether there was an error.
    bool any() const { return !text_.empty(); }
    // The first error without the name of the function that logged it, or "" if there was none.
    std::string first() const;
    bool drops_warnings() const { return warnings_ == Warnings::dropped; }

 private:
    friend void append_error(const char* text);
    std::string text_;
    Warnings warnings_;
    ErrorLog* outer_;
};

}  // namespace specllama
