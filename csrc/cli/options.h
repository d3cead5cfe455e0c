#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "specllama/config.h"

namespace specllama::cli {

// A command line that cannot be understood. The message is one sentence for the user.
class UsageError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Color { automatic, always, never };

// Who drafts, where -md names no model. automatic: the bundled draft for the bundled target, else
// the head that the model brings along, if it does, and n-grams.
enum class Draft { automatic, mtp, ngram, none };

struct Options {
    std::optional<std::string> model;   // none: the bundled target
    std::optional<std::string> prompt;  // -p
    std::optional<std::string> file;    // -f; "-" for standard input
    std::optional<std::string> grammar_file;
    std::optional<std::string> draft_device;  // none: as the target's
    std::optional<int> draft_n_gpu_layers;    // the same
    SessionOptions session;
    GenerateOptions generate;
    Draft draft = Draft::automatic;
    Color color = Color::automatic;
    bool escapes = false;  // done away with in the prompt and in stop strings
    bool stats = false;
    bool json = false;
    bool verbose = false;
    bool list_devices = false;
    bool help = false;
    bool version = false;
};

// Throws UsageError.
Options parse(int argc, const char* const* argv);

// The library's message with the options of this program in place of the library's names for them.
std::string with_flags(const std::string& message);

std::string help_text();

}  // namespace specllama::cli
