#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "specllama/session.h"

namespace specllama::cli {

// The ChatRenderer without Jinja: see render_chat.
std::optional<std::vector<Token>> llama_cpp_chat(const Session& session,
                                                 const std::optional<std::string>& system,
                                                 const std::string& message);

// The tokens to continue: of a message, if the model has a chat template and `options` do not rule
// it out; else of the prompt as it is. Says on stderr where a template could not be used. Throws
// UsageError if a system message is given that cannot be used.
std::vector<Token> prompt_tokens(const Session& session, const std::string& prompt,
                                 const Options& options);

// A sentence for a text that ended before it began.
std::string why_no_text(const Session& session, const Options& options);

}  // namespace specllama::cli
