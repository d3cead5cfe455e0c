#include "gguf/tokenizer_file.h"

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace specllama {

namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";

// llama.cpp asserts that no two tokens have the same text.
void check_unique(const GgufReader& file, std::size_t n) {
    std::unordered_set<std::string> seen;
    seen.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
        std::string token = file.text_at(kTokens, i);
        if (token.empty()) token = "[EMPTY_" + std::to_string(i) + "]";  // as llama.cpp does
        if (!seen.insert(std::move(token)).second)
            file.fail("its token " + std::to_string(i) + " has the same text as an earlier one");
    }
}

void check_parallel(const GgufReader& file, const char* key, std::initializer_list<gguf_type> types,
                    std::size_t n_tokens) {
    const auto n = file.array(key, types);
    if (n && *n < n_tokens)
        file.fail("it has " + std::to_string(n_tokens) + " tokens but only " + std::to_string(*n) +
                  " entries in " + key);
}

// llama.cpp treats -1, also as uint32, as "none".
bool is_none(std::int64_t id) { return id == -1 || id == UINT32_MAX; }

void check_special(const GgufReader& file, std::size_t n_tokens) {
    for (const char* name : {"bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "cls",
                             "mask", "fim_pre", "fim_suf", "fim_mid"}) {
        const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
        const auto id = file.number(key);
        if (id && !is_none(*id) && (*id < 0 || *id >= static_cast<std::int64_t>(n_tokens)))
            file.fail("its " + key + " is " + std::to_string(*id) + ", but it has " +
                      std::to_string(n_tokens) + " tokens");
    }
}

// For a token of type byte, llama.cpp reads its text from the fourth character on.
void check_byte_tokens(const GgufReader& file, std::size_t n_tokens) {
    constexpr const char* kTypes = "tokenizer.ggml.token_type";
    constexpr std::int64_t kByte = 6;
    const std::vector<std::int64_t> types = file.numbers(kTypes);
    for (std::size_t i = 0; i < n_tokens && i < types.size(); ++i) {
        if (types[i] != kByte) continue;
        const std::string text = file.text_at(kTokens, i);
        if (text.size() < 3)
            file.fail("its token " + std::to_string(i) +
                      " is a byte by its type, but its text is \"" + text +
                      "\", not <0x00> to <0xFF>");
    }
}

// The byte of a token of RWKV's tokenizer; none: it is not a single byte. Its texts are escaped;
// llama.cpp reads hexadecimal digits only in lower case.
std::optional<std::uint8_t> single_byte(std::string_view text) {
    const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    if (text.size() == 1 && text[0] != '\\') return text[0];
    if (text.size() < 2 || text[0] != '\\') return {};
    if (text.size() == 4 && text[1] == 'x' && is_digit(text[2]) && is_digit(text[3]))
        return std::strtol(std::string(text.substr(2)).c_str(), nullptr, 16);
    if (text.size() != 2 || text[1] == 'x') return {};
    switch (text[1]) {
        case 't':
            return '\t';
        case 'n':
            return '\n';
        case 'r':
            return '\r';
        default:
            return text[1];
    }
}

// RWKV's tokenizer takes the longest token at the beginning of the remaining text. Without such a
// token, llama.cpp loops forever.
void check_rwkv(const GgufReader& file, std::size_t n_tokens) {
    std::bitset<256> found;
    for (std::size_t i = 0; i < n_tokens; ++i)
        if (const auto byte = single_byte(file.text_at(kTokens, i))) found.set(*byte);
    for (std::size_t byte = 0; byte < found.size(); ++byte)
        if (!found[byte])
            file.fail("its tokenizer, rwkv, has no token for the single byte " +
                      std::to_string(byte));
}

// llama.cpp stores and sorts all suffixes of all tokens of PLaMo's tokenizer. For a token of 30,000
// letters this takes minutes and 500 MB.
void check_plamo2(const GgufReader& file, std::size_t n_tokens) {
    constexpr std::size_t kMost = std::size_t{1} << 26;  // limit of the sum of squared lengths
    std::size_t n = 0;
    for (std::size_t i = 0; i < n_tokens; ++i) {
        const std::size_t length = file.text_at(kTokens, i).size();
        n += std::min(length, kMost) * std::min(length, kMost);
        if (n > kMost)
            file.fail("its first " + std::to_string(i + 1) +
                      " tokens are too long for its tokenizer, plamo2");
    }
}

}  // namespace

void check_tokenizer(const GgufReader& file) {
    const auto model = file.text("tokenizer.ggml.model");
    if (!model || *model == "none" || *model == "no_vocab")
        file.fail("it has no tokenizer, so it cannot read a prompt");
    if (*model == "bert") file.fail("its tokenizer, bert, is only for embedding models");
    const std::size_t n = file.array(kTokens, {GGUF_TYPE_STRING}).value_or(0);
    if (n == 0) file.fail("it has no tokens in tokenizer.ggml.tokens");
    check_unique(file, n);
    check_parallel(file, "tokenizer.ggml.scores", {GGUF_TYPE_FLOAT32, GGUF_TYPE_INT32}, n);
    check_parallel(file, "tokenizer.ggml.token_type", {GGUF_TYPE_INT32}, n);
    file.array("tokenizer.ggml.merges", {GGUF_TYPE_STRING});
    check_special(file, n);
    check_byte_tokens(file, n);
    if (*model == "rwkv") check_rwkv(file, n);
    if (*model == "plamo2") check_plamo2(file, n);
    constexpr std::int64_t kUsual = 2;
    const auto unknown = file.number("tokenizer.ggml.unknown_token_id").value_or(kUsual);
    if (*model == "t5" && (is_none(unknown) || unknown >= static_cast<std::int64_t>(n)))
        file.fail("its tokenizer, t5, has no unknown token");
}

}  // namespace specllama
