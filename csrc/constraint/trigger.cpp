#include "constraint/trigger.h"

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
    // The first place of one of the texts; all of them end in this token.
    std::size_t first = std::string::npos;
    for (const std::string& text : texts_)
        first = std::min(first, bytes_.find(text, before - std::min(before, text.size() - 1)));
    if (first == std::string::npos) {
        forget();
        return false;
    }
    bytes_.erase(0, first);
    return true;
}

bool Trigger::begun() const {
    return std::ranges::any_of(texts_, [&](const std::string_view text) {
        std::size_t n = std::min(text.size() - 1, bytes_.size());
        while (n > 0 && !bytes_.ends_with(text.substr(0, n))) --n;
        return n > 0;
    });
}

// Drops the bytes in which no incomplete text can begin.
void Trigger::forget() { bytes_.erase(0, bytes_.size() - std::min(bytes_.size(), longest_ - 1)); }

}  // namespace specllama
