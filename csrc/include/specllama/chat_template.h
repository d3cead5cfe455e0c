#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace specllama {

struct ChatMessage {
    std::string role;  // "system", "user" or "assistant"
    std::string content;
};

// A chat as one text, for Session::tokenize.
struct ChatPrompt {
    std::string text;
    // The parts that came from messages, as TextRanges. Texts of control tokens in them are plain
    // text.
    std::vector<std::pair<std::size_t, std::size_t>> plain;
};

// Writes a chat as a model's chat template does, up to the beginning of the answer, without BOS.
// The template (SessionInfo::chat_template) is not executed: llama.cpp recognises some fifty kinds
// by their content. nullopt: the kind is unknown.
std::optional<ChatPrompt> render_chat(const std::string& chat_template,
                                      std::span<const ChatMessage> messages);

}  // namespace specllama
