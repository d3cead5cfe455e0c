#include "text/text_stream.h"

#include <algorithm>

#include "text/utf8.h"

namespace specllama {

// Searches for a stop string. The first n_searched bytes contain no whole one.
bool TextStream::find_stop(std::size_t n_searched) {
    for (const std::string& one : stop_) {
        const std::size_t from = n_searched - std::min(n_searched, one.size() - 1);
        stop_at_ = std::min(stop_at_, bytes_.find(one, from));
    }
    return stop_at_ != std::string::npos;
}

// Number of leading bytes in which no stop string can begin.
std::size_t TextStream::n_certain() const {
    std::size_t n_open = 0;
    for (const std::string& one : stop_) {
        std::size_t n = std::min(one.size() - 1, bytes_.size());
        while (n > n_open && !bytes_.ends_with(std::string_view(one).substr(0, n))) --n;
        n_open = std::max(n_open, n);
    }
    return bytes_.size() - n_open;
}

std::size_t TextStream::n_kept() const {
    const auto touched = std::ranges::partition_point(
        tokens_, [&](const PushedToken& token) { return token.end <= stop_at_; });
    return touched - tokens_.begin();
}

std::string TextStream::text() const {
    std::string text;
    append_utf8(std::string_view(bytes_).substr(0, stop_at_), true, text);
    return text;
}

std::string TextStream::stop_string() const {
    if (stop_at_ == std::string::npos) return {};
    const std::string_view rest = std::string_view(bytes_).substr(stop_at_);
    return *std::ranges::find_if(stop_,
                                 [&](const std::string& one) { return rest.starts_with(one); });
}

std::vector<TokenLogprobs> TextStream::logprobs() const {
    std::vector<TokenLogprobs> all;
    for (std::size_t i = 0; i < n_kept(); ++i)
        if (tokens_[i].logprobs) all.push_back(*tokens_[i].logprobs);
    return all;
}

void TextStream::take(bool ended, FinishReason reason, std::vector<Chunk>& chunks) {
    const std::size_t n_bytes = ended ? std::min(stop_at_, bytes_.size()) : n_certain();
    const std::size_t n_tokens = ended ? n_kept() : tokens_.size();

    const auto take_text = [&](std::size_t end, bool final, std::string& text) {
        const auto open = std::string_view(bytes_).substr(n_bytes_taken_, end - n_bytes_taken_);
        n_bytes_taken_ += append_utf8(open, final, text);
    };
    for (; n_tokens_taken_ < n_tokens && tokens_[n_tokens_taken_].end <= n_bytes;
         ++n_tokens_taken_) {
        const PushedToken& token = tokens_[n_tokens_taken_];
        Chunk& chunk = chunks.emplace_back();
        chunk.token = token.token;
        chunk.from_draft = token.from_draft;
        chunk.logprobs = token.logprobs;
        take_text(token.end, ended && token.end == n_bytes, chunk.text);
    }
    if (!ended) return;
    // A chunk without a token, for the text before a stop string inside a token, or for the reason.
    if (n_bytes_taken_ < n_bytes || (chunks.empty() && reason != FinishReason::none))
        take_text(n_bytes, true, chunks.emplace_back().text);
    if (!chunks.empty()) chunks.back().finish_reason = reason;
}

}  // namespace specllama
