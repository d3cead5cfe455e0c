#include "draft/grammar_drafter.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "sample/sampler.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// Bytes to look ahead. Their tokens fill most drafts, and later bytes are foreseen in later rounds.
constexpr std::size_t kMostBytes = 128;
// Tokens of the text that are tokenized together with the foreseen bytes: they decide where words
// begin.
constexpr std::size_t kTokensBefore = 4;

bool begins_inside_character(std::string_view bytes) {
    return !bytes.empty() && (static_cast<unsigned char>(bytes[0]) & 0xC0U) == 0x80;
}

// Length of a text in bytes, without an incomplete UTF-8 character at its end.
std::size_t whole_characters(std::string_view text) {
    for (std::size_t n = 1; n <= std::min<std::size_t>(text.size(), 4); ++n) {
        const auto byte = static_cast<unsigned char>(text[text.size() - n]);
        if (byte < 0x80) break;
        if (byte < 0xC0) continue;
        const std::size_t length = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
        return n < length ? text.size() - n : text.size();
    }
    return text.size();
}

}  // namespace

void GrammarDrafter::begin(SequenceId sequence, TokenSpan, TokenSpan) {
    followers_.erase(sequence);
}

void GrammarDrafter::end(SequenceId sequence) { followers_.erase(sequence); }

void GrammarDrafter::propose(std::span<Proposal> proposals) {
    for (Proposal& proposal : proposals) {
        if (proposal.max_tokens == 0 || proposal.sampler->options().grammar.empty()) continue;
        try {
            const Scout* scout = look(proposal.sequence, proposal.tokens, *proposal.sampler);
            if (scout != nullptr && !scout->bytes().empty()) draft(*scout, proposal);
        } catch (const Error& error) {
            proposal.error = error.what();
        }
    }
}

Token GrammarDrafter::certain(SequenceId sequence, TokenSpan tokens, Sampler& sampler) {
    if (!followers_.contains(sequence)) return kNoToken;
    const Scout* scout = look(sequence, tokens, sampler);
    if (scout == nullptr || !scout->seems_certain()) return kNoToken;
    left_.resize(vocab_->size());
    std::iota(left_.begin(), left_.end(), 0);
    left_.resize(sampler.keep_allowed(left_));
    const bool ends =
        std::ranges::all_of(left_, [&](Token token) { return vocab_->is_end(token); });
    return left_.size() == 1 || (ends && !left_.empty()) ? left_[0] : kNoToken;
}

// Returns the sequence's scout, which has looked ahead from these tokens; null if it was tired.
Scout* GrammarDrafter::look(SequenceId sequence, TokenSpan tokens, const Sampler& sampler) {
    auto found = followers_.find(sequence);
    if (found == followers_.end()) {
        found = followers_.try_emplace(sequence, Scout(byte_tokens(), habits_), 0).first;
        try {
            enter(tokens, sampler, found->second);
        } catch (...) {
            followers_.erase(found);
            throw;
        }
    } else if (found->second.scout.tired()) {
        return nullptr;
    } else {
        follow(tokens, sampler, found->second);
    }
    found->second.scout.look(kMostBytes);
    return &found->second.scout;
}

const ByteTokens& GrammarDrafter::byte_tokens() {
    if (byte_tokens_) return *byte_tokens_;
    byte_tokens_.emplace();
    byte_tokens_->end = vocab_->eos();
    for (Token token = 0; token < vocab_->size(); ++token) {
        piece_.clear();
        vocab_->append_piece(token, piece_);
        byte_tokens_->add(token, piece_);
    }
    return *byte_tokens_;
}

// The request's mask always stands at the end of its text, and so does its clone.
void GrammarDrafter::enter(TokenSpan tokens, const Sampler& sampler, Follower& follower) {
    read_end(tokens);
    follower.scout.enter(sampler.mask()->clone(), text_);
    follower.n_followed = tokens.size();
}

void GrammarDrafter::follow(TokenSpan tokens, const Sampler& sampler, Follower& follower) {
    for (const Token token : tokens.subspan(follower.n_followed)) {
        piece_.clear();
        vocab_->append_piece(token, piece_);
        if (!follower.scout.follow(token, piece_)) {
            enter(tokens, sampler, follower);
            return;
        }
    }
    follower.n_followed = tokens.size();
}

// Sets text_ to the text of the last kTokensBefore tokens, or of more where that would begin inside
// a character. It begins after the last token without text, such as one between the turns of a
// conversation.
void GrammarDrafter::read_end(TokenSpan tokens) {
    std::size_t first = tokens.size();
    bool inside = false;
    while (first > 0 && (inside || tokens.size() - first < kTokensBefore)) {
        piece_.clear();
        vocab_->append_piece(tokens[first - 1], piece_);
        if (piece_.empty()) break;
        inside = begins_inside_character(piece_);
        --first;
    }
    text_.clear();
    for (const Token token : tokens.subspan(first)) vocab_->append_piece(token, text_);
}

// Tokenizes the end of the text together with the foreseen bytes, and drafts the tokens of the
// latter. Drafts nothing unless the sequence's last token ends exactly where the foreseen bytes
// begin.
void GrammarDrafter::draft(const Scout& scout, Proposal& proposal) {
    read_end(proposal.tokens);
    const std::size_t n_known = text_.size();
    text_ += scout.bytes();
    text_.resize(std::max(whole_characters(text_), n_known));
    const std::vector<Token> tokens = vocab_->tokenize(text_, false, false);
    written_.clear();
    ends_.clear();
    for (const Token token : tokens) {
        vocab_->append_piece(token, written_);
        ends_.push_back(written_.size());
    }
    // Some tokenizers put a space before a text, so written_ may be longer than text_.
    if (!written_.ends_with(text_)) return;
    const std::size_t begin = written_.size() - text_.size() + n_known;  // first foreseen byte
    std::size_t i = 0;
    if (begin > 0) {
        const auto end = std::ranges::lower_bound(ends_, begin);
        i = end - ends_.begin();
        if (*end != begin || tokens[i] != proposal.tokens.back()) return;
        ++i;
    }
    std::size_t at = 0;
    for (; i < tokens.size() && proposal.draft.size() < proposal.max_tokens; ++i) {
        const std::size_t end = ends_[i] - begin;
        float confidence = 1;
        for (; at < end; ++at) confidence *= scout.confidence()[at];
        const auto n_behind = static_cast<int>(written_.size() - ends_[i]);
        proposal.draft.push(tokens[i], {Source::grammar, n_behind, confidence});
    }
}

}  // namespace specllama
