#pragma once

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "specllama/config.h"

namespace specllama::cli {

// Thrown for a command line that cannot be used. The message is one sentence for the user.
class UsageError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Color { automatic, always, never };

// Who drafts. n-grams take part in all but `none`, and so does a model given with -md.
// automatic: without -md, also the bundled draft model if the target is the bundled one, else the
// head in the model's own file if it has one. mtp: without -md, also that head. none: nobody, even
// if -md or --corpus is given.
enum class Draft { automatic, mtp, ngram, none };

struct Options {
    std::filesystem::path executable;   // that of spec-cli
    std::optional<std::string> model;   // none: the bundled target
    std::optional<std::string> prompt;  // -p
    std::optional<std::string> file;    // -f; "-" for standard input
    std::optional<std::string> grammar_file;
    std::optional<std::vector<std::string>> dry_breakers;  // none: those of SamplingOptions
    std::optional<std::string> draft_device;  // none: the target's, or "" with RPC servers
    std::optional<int> draft_n_gpu_layers;    // none: as many as the target's
    SessionOptions session;
    GenerateOptions generate;
    Draft draft = Draft::automatic;
    Color color = Color::automatic;
    bool escapes = false;  // whether those in the prompt, stop strings and breakers are replaced
    bool stats = false;
    bool json = false;
    bool verbose = false;
    bool list_devices = false;
    bool help = false;
    bool version = false;
};

// Throws UsageError.
Options parse(int argc, const char* const* argv);

// Returns a message of the library with its names of options replaced by the flags of this program.
std::string with_flags(const std::string& message);

std::string help_text();

}  // namespace specllama::cli
