#include "specllama/chat_template.h"

#include <cstdint>

#include "llama.h"

namespace specllama {

namespace {

// Replaces a content, and cannot be part of a template: a noncharacter of Unicode.
constexpr const char* kPlaceholder = "\xEF\xB7\x90";

}  // namespace

std::optional<ChatPrompt> render_chat(const std::string& chat_template,
                                      std::span<const ChatMessage> messages) {
    std::vector<llama_chat_message> shown;
    for (const ChatMessage& message : messages)
        shown.push_back({message.role.c_str(), kPlaceholder});
    const auto apply = [&](std::string& text) {
        return llama_chat_apply_template(chat_template.c_str(), shown.data(), shown.size(), true,
                                         text.data(), static_cast<std::int32_t>(text.size()));
    };
    std::string rendered(1024, '\0');
    std::int32_t size = apply(rendered);
    if (size > static_cast<std::int32_t>(rendered.size())) {
        rendered.resize(static_cast<std::size_t>(size));
        size = apply(rendered);
    }
    if (size < 0) return {};
    rendered.resize(static_cast<std::size_t>(size));
    ChatPrompt prompt;
    std::size_t at = 0;
    for (const ChatMessage& message : messages) {
        const std::size_t found = rendered.find(kPlaceholder, at);
        if (found == std::string::npos) return {};  // the template leaves a message out
        prompt.text.append(rendered, at, found - at);
        const std::size_t begin = prompt.text.size();
        prompt.text += message.content;
        prompt.plain.emplace_back(begin, prompt.text.size());
        at = found + std::char_traits<char>::length(kPlaceholder);
    }
    prompt.text.append(rendered, at);
    return prompt;
}

}  // namespace specllama
