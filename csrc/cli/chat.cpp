#include "cli/chat.h"

#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

#include "specllama/chat_template.h"
#include "specllama/image_file.h"

namespace specllama::cli {

namespace {

using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

}  // namespace

MediaPrompt text_prompt(std::vector<Token> tokens) {
    const int n_rows = static_cast<int>(tokens.size());
    return {.tokens = std::move(tokens), .chunks = {}, .n_rows = n_rows};
}

std::optional<MediaPrompt> llama_cpp_chat(const Session& session,
                                          const std::optional<std::string>& system,
                                          const std::string& message,
                                          std::span<const std::string> media) {
    std::vector<ChatMessage> messages;
    if (system) messages.push_back({"system", *system});
    messages.push_back({"user", message});
    const auto prompt = render_chat(session.info().chat_template.value_or(""), messages);
    if (!prompt) return {};
    if (media.empty())
        return text_prompt(session.tokenize(prompt->text, true, true, prompt->plain));
    // The message is the last part of the text that is not the template's.
    const auto [begin, end] = prompt->plain.back();
    const Ranges before(prompt->plain.begin(), prompt->plain.end() - 1);
    const Ranges after = {{0, end - begin}};
    std::vector<PromptPart> parts;
    parts.emplace_back(session.tokenize(prompt->text.substr(0, begin), true, true, before));
    for (const std::string& path : media) parts.emplace_back(read_image(path));
    parts.emplace_back(session.tokenize(prompt->text.substr(begin), false, true, after));
    return session.media_prompt(parts);
}

MediaPrompt make_prompt(const Session& session, const std::string& prompt, const Options& options) {
    if (!options.raw && session.info().chat_template) {
        if (auto made = options.chat(session, options.system, prompt, options.media)) return *made;
        std::fputs(
            "spec-cli: llama.cpp does not know this model's chat template, so the prompt is "
            "continued as it is; specllama chat -p answers it.\n",
            stderr);
    }
    if (options.system)
        throw UsageError("-sys needs a model with a chat template that llama.cpp supports.");
    if (!options.media.empty())
        throw UsageError("--image needs a model with a chat template that llama.cpp supports.");
    return text_prompt(session.tokenize(prompt));
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
