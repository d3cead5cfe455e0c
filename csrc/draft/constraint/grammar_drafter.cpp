#include "draft/constraint/grammar_drafter.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "sample/sampler.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// Bytes to look ahead. Their tokens fill most drafts; later bytes are predicted in later rounds.
constexpr std::size_t kMostBytes = 128;
// Tokens of the text that are tokenized together with the predicted bytes, because they determine
// where words begin.
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

void GrammarDrafter::propose(std::span<DraftRequest> proposals) {
    for (DraftRequest& proposal : proposals) {
        if (proposal.max_tokens == 0) continue;
        try {
            const GrammarLookahead* lookahead =
                advanced(proposal.sequence, proposal.tokens, *proposal.sampler);
            if (lookahead != nullptr && !lookahead->bytes().empty()) draft(*lookahead, proposal);
        } catch (const Error& error) {
            proposal.error = error.what();
        }
    }
}

Token GrammarDrafter::forced(SequenceId sequence, TokenSpan tokens, const Sampler& sampler) {
    if (!followers_.contains(sequence)) return kNoToken;
    const GrammarLookahead* lookahead = advanced(sequence, tokens, sampler);
    if (lookahead == nullptr || !lookahead->forced()) return kNoToken;
    Token only = kNoToken;
    const Mask::Bits bits = sampler.mask()->allowed();
    for (std::size_t word = 0; word < bits.size(); ++word) {
        for (std::uint32_t left = bits[word]; left != 0; left &= left - 1) {
            const auto token = static_cast<Token>(word * 32 + std::countr_zero(left));
            if (only != kNoToken && !(vocab_->is_end(only) && vocab_->is_end(token)))
                return kNoToken;
            if (only == kNoToken) only = token;
        }
    }
    return only;
}

// Returns the sequence's lookahead, advanced from these tokens. null: the sampler has no mask (the
// target may have it), the grammar has not begun, or it does not support lookahead.
GrammarLookahead* GrammarDrafter::advanced(SequenceId sequence, TokenSpan tokens,
                                           const Sampler& sampler) {
    const Mask* mask = sampler.mask();
    if (sampler.options().grammar.empty() || mask == nullptr || !mask->begun()) return nullptr;
    const auto [found, is_new] = followers_.try_emplace(sequence);
    std::optional<Follower>& follower = found->second;
    try {
        if (is_new) {
            follower.emplace(GrammarLookahead(token_bytes(), history_));
            enter(tokens, sampler, follower);
        } else if (follower) {
            follow(tokens, sampler, follower);
        }
        if (follower) follower->lookahead.advance(kMostBytes);
    } catch (const DecodeError&) {
        follower.reset();
        throw;
    }
    return follower ? &follower->lookahead : nullptr;
}

const TokenBytes& GrammarDrafter::token_bytes() {
    for (auto token = static_cast<Token>(token_bytes_.size()); token < vocab_->size(); ++token) {
        piece_.clear();
        if (!vocab_->is_end(token)) vocab_->append_piece(token, piece_);
        token_bytes_.add(piece_);
    }
    return token_bytes_;
}

// The request's mask has always followed its whole text, and so has the clone.
void GrammarDrafter::enter(TokenSpan tokens, const Sampler& sampler,
                           std::optional<Follower>& follower) {
    std::unique_ptr<Mask> mask = sampler.mask()->clone();
    if (!mask) {
        follower.reset();
        return;
    }
    read_end(tokens);
    follower->lookahead.enter(std::move(mask), text_);
    follower->n_followed = tokens.size();
}

void GrammarDrafter::follow(TokenSpan tokens, const Sampler& sampler,
                            std::optional<Follower>& follower) {
    for (const Token token : tokens.subspan(follower->n_followed)) {
        piece_.clear();
        vocab_->append_piece(token, piece_);
        if (!follower->lookahead.follow(token, piece_)) {
            enter(tokens, sampler, follower);
            return;
        }
    }
    follower->n_followed = tokens.size();
}

// Sets text_ to the text of the last kTokensBefore tokens, or of more if that would begin inside a
// character. It begins after the last token without text, such as a token between the turns of a
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

// Tokenizes the end of the text together with the predicted bytes, and drafts the tokens of these
// bytes. Drafts nothing unless the sequence's last token ends exactly where the predicted bytes
// begin.
void GrammarDrafter::draft(const GrammarLookahead& lookahead, DraftRequest& proposal) {
    read_end(proposal.tokens);
    const std::size_t n_known = text_.size();
    text_ += lookahead.bytes();
    text_.resize(std::max(whole_characters(text_), n_known));
    const std::vector<Token> tokens = vocab_->tokenize(text_, false, false);
    written_.clear();
    ends_.clear();
    for (const Token token : tokens) {
        vocab_->append_piece(token, written_);
        ends_.push_back(written_.size());
    }
    // Some tokenizers add a space before a text, so written_ may be longer than text_.
    if (!written_.ends_with(text_)) return;
    const std::size_t begin = written_.size() - text_.size() + n_known;  // first predicted byte
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
        for (; at < end; ++at) confidence *= lookahead.confidence()[at];
        const auto n_bytes_after = static_cast<int>(written_.size() - ends_[i]);
        proposal.draft.push(tokens[i], {Source::grammar, n_bytes_after, confidence});
    }
}

}  // namespace specllama
