#include "runtime/vocab.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "fnv.h"
#include "llama.h"
#include "specllama/error.h"
#include "system/big_stack.h"
#include "text/utf8.h"

namespace specllama {

namespace {

// Some tokenizers split a text with std::regex, which recurses for each character of a word: 30 kB
// without a space need more than the 8 MiB of a thread's stack. So texts longer than kShortText get
// a stack of kStack plus kStackOfByte for each byte.
constexpr std::size_t kShortText = 2048;
constexpr std::size_t kStack = std::size_t{8} << 20;
constexpr std::size_t kStackOfByte = 1024;

// Most special tokens in a part of a text that is tokenized at once (see SpecialTexts).
constexpr std::size_t kSpecialAtOnce = 256;

// For SentencePiece, llama.cpp copies all tokens so far at each character that is not a token. So
// the number of these characters times the bytes of the text is bounded; this bound takes about a
// second.
constexpr double kMostCopied = 4e9;

constexpr std::string_view kBlank = "\xE2\x96\x81";  // a blank in a vocabulary

// Calls a function with the bytes of each character of a text; for invalid UTF-8, the values are
// arbitrary.
template <typename Function>
void for_each_character(std::string_view text, Function function) {
    for (std::size_t at = 0; at < text.size();) {
        const auto lead = static_cast<unsigned char>(text[at]);
        const std::size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        const std::string_view one = text.substr(at, length);
        std::uint32_t bytes = 0;
        for (const char c : one == " " ? kBlank : one)
            bytes = bytes << 8 | static_cast<unsigned char>(c);
        function(bytes);
        at += one.size();
    }
}

// Fills a buffer by a function of llama.cpp, which returns the size written or, negated, the size
// needed.
template <typename Buffer, typename Fill>
void fit(Buffer& buffer, Fill fill) {
    std::int32_t n = fill();
    if (n < 0) {
        buffer.resize(-n);
        n = fill();
    }
    buffer.resize(n);
}

// Tokens whose texts are read only if parse_special is set.
constexpr int kControl = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN;

SpecialTexts control_texts(const llama_vocab* vocab) {
    std::vector<std::string_view> texts;
    for (Token token = 0; token < llama_vocab_n_tokens(vocab); ++token)
        if ((llama_vocab_get_attr(vocab, token) & kControl) != 0)
            texts.emplace_back(llama_vocab_get_text(vocab, token));
    return SpecialTexts(std::move(texts));
}

void check_ranges(TextRanges ranges, std::size_t size) {
    std::size_t last = 0;
    for (const auto& [begin, end] : ranges) {
        if (begin < last || end < begin || end > size)
            throw InvalidArgument("plain has the part " + std::to_string(begin) + " to " +
                                  std::to_string(end) + ", which is out of order, or outside the " +
                                  std::to_string(size) + " bytes of the text.");
        last = end;
    }
}

// The special texts of a vocabulary, if a text may be cut around them, that is, if they strip no
// blanks next to them.
SpecialTexts special_texts(const llama_vocab* vocab, int attributes) {
    const auto type = llama_vocab_type(vocab);
    if (type != LLAMA_VOCAB_TYPE_BPE && type != LLAMA_VOCAB_TYPE_SPM) return {};
    std::vector<std::string_view> texts;
    for (Token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
        const int attribute = llama_vocab_get_attr(vocab, token);
        if ((attribute & attributes) == 0) continue;
        if ((attribute & (LLAMA_TOKEN_ATTR_LSTRIP | LLAMA_TOKEN_ATTR_RSTRIP)) != 0) return {};
        texts.emplace_back(llama_vocab_get_text(vocab, token));
    }
    return SpecialTexts(std::move(texts));
}

std::vector<Token> ends(const llama_vocab* vocab) {
    std::vector<Token> tokens;
    for (Token token = 0; token < llama_vocab_n_tokens(vocab); ++token)
        if (llama_vocab_is_eog(vocab, token)) tokens.push_back(token);
    return tokens;
}

// Hashes one element of a list and an end mark.
std::uint64_t hash_part(std::string_view part, std::uint64_t hash) {
    return fnv1a(std::string_view("\0", 1), fnv1a(part, hash));
}

}  // namespace

Vocab::Vocab(const llama_vocab* vocab)
    : Vocabulary(llama_vocab_n_tokens(vocab), specllama::ends(vocab)),
      vocab_(vocab),
      lengths_(size()) {
    for (Token token = 0; token < size(); ++token) {
        // For a tokenizer that works on bytes, llama.cpp keeps each byte as one character.
        const std::string_view text = llama_vocab_get_text(vocab_, token);
        const auto n = std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
        lengths_[token] = static_cast<std::uint8_t>(std::min<std::ptrdiff_t>(n, 255));
        if (n == 1 && llama_vocab_type(vocab_) == LLAMA_VOCAB_TYPE_SPM)
            for_each_character(text, [&](std::uint32_t one) { characters_.insert(one); });
    }
    control_texts_ = control_texts(vocab_);
    own_texts_ = special_texts(vocab_, LLAMA_TOKEN_ATTR_USER_DEFINED);
    special_texts_ = special_texts(vocab_, LLAMA_TOKEN_ATTR_USER_DEFINED | kControl);
}

Token Vocab::bos() const { return llama_vocab_bos(vocab_); }

bool Vocab::ends_message(Token token) const {
    return is_end(token) || token == llama_vocab_eot(vocab_);
}

Token Vocab::eos() const { return llama_vocab_eos(vocab_); }

FimTokens Vocab::fim() const {
    return {llama_vocab_fim_pre(vocab_), llama_vocab_fim_suf(vocab_), llama_vocab_fim_mid(vocab_),
            llama_vocab_fim_rep(vocab_), llama_vocab_fim_sep(vocab_)};
}

std::vector<Token> Vocab::tokenize(std::string_view text, bool add_special, bool parse_special,
                                   TextRanges plain) const {
    // llama.cpp counts bytes and tokens in int32.
    if (text.size() > std::numeric_limits<std::int32_t>::max() / 2)
        throw InvalidArgument("The text is longer than 1 GiB; shorten it.");
    check_unknown_characters(text);
    check_ranges(plain, text.size());
    std::vector<Token> tokens;
    const auto append = [&](std::string_view part, bool parse) {
        std::vector<Token> some(part.size() + 8);
        const bool add = add_special && part.data() == text.data();
        fit(some, [&] {
            return llama_tokenize(vocab_, part.data(), static_cast<std::int32_t>(part.size()),
                                  some.data(), static_cast<std::int32_t>(some.size()), add, parse);
        });
        // The text is to be continued, so it must not end with EOS.
        if (add && llama_vocab_get_add_eos(vocab_) && !some.empty() && some.back() == eos())
            some.pop_back();
        if (std::ranges::any_of(some, [](Token token) { return token < 0; }))
            throw std::out_of_range("no token for a part of the text");
        tokens.insert(tokens.end(), some.begin(), some.end());
    };
    const auto append_run = [&](const SpecialTexts::Run& run) {
        if (run.text.size() <= kShortText) {
            append(run.text, run.parse_special);
            return;
        }
        with_stack(kStack + run.text.size() * kStackOfByte, [&] {
            const SpecialTexts& special = run.parse_special ? special_texts_ : own_texts_;
            for (const std::string_view part : special.parts(run.text, kSpecialAtOnce))
                append(part, run.parse_special);
        });
    };
    try {
        if (parse_special)
            std::ranges::for_each(control_texts_.runs(text, plain), append_run);
        else
            append_run({text, false});
    } catch (const std::system_error&) {
        throw InvalidArgument("The text is too long to be tokenized on this machine; shorten it.");
    } catch (const std::exception&) {
        // Some tokenizers throw for bytes without a token, or return -1.
        throw InvalidArgument("The model's tokenizer has no tokens for some of this text.");
    }
    return tokens;
}

void Vocab::check_unknown_characters(std::string_view text) const {
    const auto n_bytes = static_cast<double>(text.size());
    if (characters_.empty() || n_bytes * n_bytes <= kMostCopied) return;
    std::size_t n = 0;
    for_each_character(text, [&](std::uint32_t one) { n += !characters_.contains(one); });
    if (static_cast<double>(n) * n_bytes > kMostCopied)
        throw InvalidArgument("The text has " + std::to_string(text.size()) + " bytes, and " +
                              std::to_string(n) +
                              " of its characters are not tokens of this model; shorten it.");
}

std::string Vocab::detokenize(TokenSpan tokens, bool special) const {
    check(tokens);
    std::string text;
    append_utf8(bytes(tokens, special), true, text);
    return text;
}

// May be invalid UTF-8.
std::string Vocab::bytes(TokenSpan tokens, bool special) const {
    // For BPE, llama.cpp would remove blanks before punctuation, which belong to the text.
    if (llama_vocab_type(vocab_) == LLAMA_VOCAB_TYPE_BPE) {
        std::string pieces;
        for (const Token token : tokens) append_piece(token, pieces, special);
        return pieces;
    }
    std::string text(tokens.size() * 8 + 16, '\0');
    fit(text, [&] {
        return llama_detokenize(vocab_, tokens.data(), static_cast<std::int32_t>(tokens.size()),
                                text.data(), static_cast<std::int32_t>(text.size()), false,
                                special);
    });
    return text;
}

std::string Vocab::difference(const Vocab& other) const {
    const auto differ = [](const std::string& what, const auto& mine, const auto& theirs) {
        return what + " " + theirs + ", not " + mine;
    };
    if (llama_vocab_type(vocab_) != llama_vocab_type(other.vocab_))
        return "its tokenizer is of another type";
    if (size() != other.size())
        return differ("it has", std::to_string(size()), std::to_string(other.size()) + " tokens");
    for (Token token = 0; token < size(); ++token) {
        const std::string mine = llama_vocab_get_text(vocab_, token);
        const std::string theirs = llama_vocab_get_text(other.vocab_, token);
        const std::string number = std::to_string(token);
        if (mine != theirs)
            return differ("its token " + number + " is", "\"" + mine + "\"", "\"" + theirs + "\"");
        if (is_end(token) != other.is_end(token))
            return "only one of them ends a generation with token " + number;
    }
    if (llama_vocab_bos(vocab_) != llama_vocab_bos(other.vocab_))
        return differ("its BOS token is", std::to_string(llama_vocab_bos(vocab_)),
                      std::to_string(llama_vocab_bos(other.vocab_)));
    if (llama_vocab_eos(vocab_) != llama_vocab_eos(other.vocab_))
        return differ("its EOS token is", std::to_string(llama_vocab_eos(vocab_)),
                      std::to_string(llama_vocab_eos(other.vocab_)));
    if (llama_vocab_get_add_bos(vocab_) != llama_vocab_get_add_bos(other.vocab_))
        return "only one of them puts BOS before a text";
    return "";
}

std::uint64_t Vocab::text_fingerprint() const {
    std::uint64_t hash = hash_part(std::to_string(llama_vocab_type(vocab_)), kFnvBasis);
    for (Token token = 0; token < size(); ++token)
        hash = hash_part(llama_vocab_get_text(vocab_, token), hash);
    return hash;
}

// Hashes everything that `difference` compares.
std::uint64_t Vocab::fingerprint() const {
    std::uint64_t hash = text_fingerprint();
    for (const int special : {llama_vocab_bos(vocab_), llama_vocab_eos(vocab_),
                              static_cast<int>(llama_vocab_get_add_bos(vocab_))})
        hash = hash_part(std::to_string(special), hash);
    for (Token token = 0; token < size(); ++token)
        hash = hash_part(is_end(token) ? "end" : "", hash);
    return hash;
}

void Vocab::append_piece(Token token, std::string& out, bool special) const {
    constexpr int kShort = 32;
    const std::size_t before = out.size();
    out.resize(before + kShort);
    int n = llama_token_to_piece(vocab_, token, out.data() + before, kShort, 0, special);
    if (n < 0) {
        out.resize(before - n);
        n = llama_token_to_piece(vocab_, token, out.data() + before, -n, 0, special);
    }
    out.resize(before + n);
}

}  // namespace specllama
