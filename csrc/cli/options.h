#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "specllama/generate_options.h"
#include "specllama/media.h"
#include "specllama/session_options.h"
#include "specllama/types.h"

namespace specllama {

class Session;

}  // namespace specllama

namespace specllama::cli {

// Formats a message, after the system message if there is one, with the chat template of the
// session's model. media: paths of images and sounds, which come before the text of the message.
// nullopt: the template is not supported.
using ChatRenderer = std::function<std::optional<MediaPrompt>(
    const Session&, const std::optional<std::string>& system, const std::string& message,
    std::span<const std::string> media)>;

// Thrown for an invalid command line. The message is one sentence for the user.
class UsageError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Options {
    std::filesystem::path executable;   // path of spec-cli
    std::optional<std::string> prompt;  // -p
    std::optional<std::string> file;    // -f; "-" for standard input
    std::optional<std::string> system;  // -sys
    std::vector<std::string> media;     // --image
    std::optional<std::string> grammar_file;
    ChatRenderer chat;       // for models with a chat template
    bool raw = false;        // whether the prompt is continued without a chat template
    SessionOptions session;  // without a path: the bundled model
    GenerateOptions generate;
    // The drafter. n-grams and a model given with -md draft unless it is "none". Without -md, also:
    // "auto": the result of automatic_draft; "mtp": the head in the model's file. "none": no
    // drafts, even with -md or --corpus.
    std::string draft = "auto";
    Switch color = Switch::automatic;
    bool escapes = false;  // whether escapes in the prompt, stop strings and breakers are replaced
    bool stats = false;
    bool json = false;
    bool verbose = false;
    bool list_devices = false;
    bool help = false;
    bool version = false;
};

// Throws UsageError.
Options parse(int argc, const char* const* argv);

// Sets a grammar, with the syntax that its first line shows. Throws UsageError if it is empty.
void set_grammar(Options& options, const std::string& grammar);

// Returns a message of the library with names of options replaced by this program's flags.
std::string with_flags(const std::string& message);

std::string help_text();

}  // namespace specllama::cli
