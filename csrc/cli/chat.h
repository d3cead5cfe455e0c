#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "specllama/session.h"

namespace specllama::cli {

// A prompt without images and sounds.
MediaPrompt text_prompt(std::vector<Token> tokens);

// The ChatRenderer without Jinja (render_chat).
std::optional<MediaPrompt> llama_cpp_chat(const Session& session,
                                          const std::optional<std::string>& system,
                                          const std::string& message,
                                          std::span<const std::string> media);

// The tokens to continue: those of a chat message, if the model has a chat template and options.raw
// is not set; otherwise those of the prompt itself. Prints a notice on stderr if the template is
// not supported. Throws UsageError if a system message or an image is given but cannot be used.
MediaPrompt make_prompt(const Session& session, const std::string& prompt, const Options& options);

// A sentence that explains an empty text.
std::string why_no_text(const Session& session, const Options& options);

}  // namespace specllama::cli
