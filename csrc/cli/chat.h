#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "specllama/session.h"

namespace specllama::cli {

// The ChatRenderer without Jinja (render_chat).
std::optional<std::vector<Token>> llama_cpp_chat(const Session& session,
                                                 const std::optional<std::string>& system,
                                                 const std::string& message);

// The tokens to continue: those of a chat message, if the model has a chat template and options.raw
// is not set; otherwise those of the prompt itself. Prints a notice on stderr if the template is
// not supported. Throws UsageError if a system message is given but cannot be used.
std::vector<Token> prompt_tokens(const Session& session, const std::string& prompt,
                                 const Options& options);

// A sentence that explains an empty text.
std::string why_no_text(const Session& session, const Options& options);

}  // namespace specllama::cli
