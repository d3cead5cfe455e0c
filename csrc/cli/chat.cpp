#include "cli/chat.h"

#include <cstdio>

#include "specllama/chat_template.h"

namespace specllama::cli {

std::optional<std::vector<Token>> llama_cpp_chat(const Session& session,
                                                 const std::optional<std::string>& system,
                                                 const std::string& message) {
    std::vector<ChatMessage> messages;
    if (system) messages.push_back({"system", *system});
    messages.push_back({"user", message});
    const auto prompt = render_chat(session.info().chat_template.value_or(""), messages);
    if (!prompt) return {};
    return session.tokenize(prompt->text, true, true, prompt->plain);
}

std::vector<Token> prompt_tokens(const Session& session, const std::string& prompt,
                                 const Options& options) {
    if (!options.raw && session.info().chat_template) {
        if (auto tokens = options.chat(session, options.system, prompt)) return *tokens;
        std::fputs(
            "spec-cli: llama.cpp does not know this model's chat template, so the prompt is "
            "continued as it is; specllama chat -p answers it.\n",
            stderr);
    }
    if (options.system)
        throw UsageError("-sys needs a model with a chat template that llama.cpp supports.");
    return session.tokenize(prompt);
}

std::string why_no_text(const Session& session, const Options& options) {
    const std::string end = options.generate.stop.empty()
                                ? "The model ended its text at once, so nothing is printed"
                                : "The text ended at once, by the model or a stop text";
    if (options.raw && session.info().chat_template)
        return end + "; it was made for chat: leave out -no-cnv.";
    return end + "; try another prompt, or --ignore-eos.";
}

}  // namespace specllama::cli
