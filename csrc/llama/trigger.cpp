#include "llama/trigger.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace specllama {

Trigger::Trigger(const Vocab& vocab, std::vector<std::string> texts)
    : vocab_(&vocab), texts_(std::move(texts)) {
    for (const std::string& text : texts_) longest_ = std::max(longest_, text.size());
}

bool Trigger::push(Token token) {
    const std::size_t before = bytes_.size();
    vocab_->append_piece(token, bytes_, true);
    tokens_.push_back(token);
    sizes_.push_back(bytes_.size() - before);
    const bool found = std::ranges::any_of(texts_, [&](const std::string& text) {
        return bytes_.find(text, before - std::min(before, text.size() - 1)) != std::string::npos;
    });
    if (!found) forget();
    return found;
}

bool Trigger::begun() const {
    return std::ranges::any_of(texts_, [&](const std::string_view text) {
        std::size_t n = std::min(text.size() - 1, bytes_.size());
        while (n > 0 && !bytes_.ends_with(text.substr(0, n))) --n;
        return n > 0;
    });
}

// Drops the tokens in which no text that is still to be completed can begin.
void Trigger::forget() {
    std::size_t n_tokens = 0;
    std::size_t n_bytes = 0;
    while (n_tokens < sizes_.size() && bytes_.size() - n_bytes - sizes_[n_tokens] >= longest_ - 1)
        n_bytes += sizes_[n_tokens++];
    bytes_.erase(0, n_bytes);
    tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(n_tokens));
    sizes_.erase(sizes_.begin(), sizes_.begin() + static_cast<std::ptrdiff_t>(n_tokens));
}

void Trigger::restart() {
    bytes_.clear();
    tokens_.clear();
    sizes_.clear();
}

std::string Trigger::pattern() const {
    constexpr std::string_view kSpecial = R"(\^$.|?*+()[]{})";
    std::string pattern;
    for (const std::string& text : texts_) {
        pattern += pattern.empty() ? "(" : "|";
        for (const char c : text) {
            if (kSpecial.find(c) != std::string_view::npos) pattern += '\\';
            pattern += c;
        }
    }
    return pattern + ")";
}

}  // namespace specllama
