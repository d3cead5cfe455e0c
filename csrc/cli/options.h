#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "specllama/generate_options.h"
#include "specllama/session_options.h"
#include "specllama/types.h"

namespace specllama {

class Session;

}  // namespace specllama

namespace specllama::cli {

// Writes a message, after the system message if there is one, as the chat template of the session's
// model does. nullopt: it cannot be written so.
using ChatRenderer = std::function<std::optional<std::vector<Token>>(
    const Session&, const std::optional<std::string>& system, const std::string& message)>;

// Thrown for a command line that cannot be used. The message is one sentence for the user.
class UsageError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Options {
    std::filesystem::path executable;   // that of spec-cli
    std::optional<std::string> prompt;  // -p
    std::optional<std::string> file;    // -f; "-" for standard input
    std::optional<std::string> system;  // -sys
    std::optional<std::string> grammar_file;
    ChatRenderer chat;       // for models with a chat template
    bool raw = false;        // whether the prompt is continued as it is, chat template or not
    SessionOptions session;  // without a path, the bundled model
    GenerateOptions generate;
    // The drafter. n-grams take part in all but "none", and so does a model given with -md. "auto":
    // without -md, also what automatic_draft says. "mtp": without -md, also the head in the model's
    // own file. "none": no drafts, even if -md or --corpus is given.
    std::string draft = "auto";
    Switch color = Switch::automatic;
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

// Sets a grammar, and its syntax by its first line. Throws UsageError if it is empty.
void set_grammar(Options& options, const std::string& grammar);

// Returns a message of the library with its names of options replaced by the flags of this program.
std::string with_flags(const std::string& message);

std::string help_text();

}  // namespace specllama::cli
