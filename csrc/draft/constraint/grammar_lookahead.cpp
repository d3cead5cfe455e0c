#include "draft/constraint/grammar_lookahead.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace specllama {

namespace {

// A byte with a lower confidence is not predicted.
constexpr float kLeastConfidence = 0.5F;
// When more bytes of a text are held, its beginning is forgotten.
constexpr std::size_t kLongestText = 1024;

}  // namespace

void GrammarLookahead::enter(std::unique_ptr<Mask> mask, std::string_view text) {
    mask_ = std::move(mask);
    text_ = text;
    n_text_ = text.size();
    confidence_.clear();
    contexts_.clear();
    has_read_ = false;
}

bool GrammarLookahead::follow(Token token, std::string_view bytes) {
    if (n_text_ > kLongestText) {
        text_.erase(0, n_text_ - ByteHistory::kReach);
        n_text_ = ByteHistory::kReach;
    }
    const std::size_t n = std::min(bytes.size(), confidence_.size());
    for (std::size_t i = 0; i < n; ++i) {
        if (contexts_[i]) history_->learn(*contexts_[i], bytes[i]);
        if (bytes[i] != text_[n_text_ + i]) return false;
    }
    n_text_ += n;
    confidence_.erase(confidence_.begin(), confidence_.begin() + static_cast<std::ptrdiff_t>(n));
    contexts_.erase(contexts_.begin(), contexts_.begin() + static_cast<std::ptrdiff_t>(n));
    bytes.remove_prefix(n);
    if (n > 0 && bytes.empty()) return true;
    if (!confidence_.empty()) return false;  // a token without bytes
    if (n == 0) return accept(token, bytes);
    return std::ranges::all_of(
        bytes, [&](const char& byte) { return accept(tokens_->alone(byte), {&byte, 1}); });
}

// Continues the text after all predicted bytes.
bool GrammarLookahead::accept(Token token, std::string_view bytes) {
    if (token == kNoToken || !mask_->allows(token)) return false;
    if (!bytes.empty() && choice())
        history_->learn(ByteHistory::context(text_, allowed_), bytes[0]);
    mask_->accept(token);
    text_ += bytes;
    n_text_ = text_.size();
    has_read_ = false;
    return true;
}

void GrammarLookahead::advance(std::size_t n_most) {
    while (confidence_.size() < n_most && predict_next()) {
    }
}

// Predicts one more byte. Returns false if none can be predicted.
bool GrammarLookahead::predict_next() {
    if (!has_read_) read_mask();
    if (!few() || allowed_.empty()) return false;
    char byte = allowed_[0];
    float confidence = 1;
    std::optional<ByteHistory::Context> context;
    if (choice()) {
        context = ByteHistory::context(text_, allowed_);
        const ByteHistory::Entry* entry = history_->find(*context);
        if (entry == nullptr || entry->confidence() < kLeastConfidence) return false;
        byte = entry->byte;
        confidence = entry->confidence();
    }
    const Token token = tokens_->alone(byte);
    if (token == kNoToken || !mask_->allows(token)) return false;
    mask_->accept(token);
    text_ += byte;
    confidence_.push_back(confidence);
    contexts_.push_back(context);
    has_read_ = false;
    return true;
}

void GrammarLookahead::read_mask() {
    has_read_ = true;
    allowed_.clear();
    no_text_ = false;
    const Mask::Bits bits = mask_->allowed();
    if (bits.empty()) allowed_.assign(kFew + 1, 0);  // any token
    for (std::size_t word = 0; word < bits.size() && allowed_.size() <= kFew; ++word) {
        for (std::uint32_t left = bits[word]; left != 0; left &= left - 1) {
            const int first =
                tokens_->first(static_cast<Token>(word * 32 + std::countr_zero(left)));
            if (first == TokenBytes::kNoText)
                no_text_ = true;
            else if (allowed_.find(static_cast<char>(first)) == std::string::npos)
                allowed_ += static_cast<char>(first);
        }
    }
    std::ranges::sort(allowed_);
}

}  // namespace specllama
