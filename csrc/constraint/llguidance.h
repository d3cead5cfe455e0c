#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace specllama {

// The C interface of llguidance, which comes as the extension module of its Python package. The
// package has no header, so the functions used here are declared here, by the documentation of
// llguidance 1.9.1 (parser/llguidance.h). This is safe because pyproject.toml pins exactly this
// version, and llguidance() refuses any other.

struct LlgTokenizer;
struct LlgMatcher;

struct LlgParserLimits {
    std::size_t max_items_in_row;
    std::uint64_t initial_lexer_fuel;
    std::uint64_t step_lexer_fuel;
    std::size_t step_max_items;
    std::size_t max_lexer_states;
    std::size_t max_grammar_size;
    bool precompute_large_lexemes;
    bool verbose_errors;
};

struct LlgConstraintInit {
    const LlgTokenizer* tokenizer;
    std::uint32_t log_buffer_level;
    std::uint32_t log_stderr_level;
    bool ff_tokens_ok;
    bool backtrack_ok;
    LlgParserLimits limits;
};

struct LlgTokenizerInitV2 {
    std::size_t struct_size;
    std::uint32_t vocab_size;
    std::uint32_t tok_eos;
    const std::uint32_t* token_lens;
    const std::uint8_t* token_bytes;
    const char* tokenizer_json;
    bool tokenize_assumes_string;
    std::size_t (*tokenize_fn)(const void* user_data, const std::uint8_t* bytes, std::size_t n,
                               std::uint32_t* tokens, std::size_t n_tokens);
    bool use_approximate_greedy_tokenize_fn;
    const void* tokenize_user_data;
    const char* const* slices;
    const std::uint32_t* tok_eos_extra;
    std::uint32_t tok_eos_extra_count;
};

// Functions return 0, or -1 for an error, unless noted.
struct Llguidance {
    const char* (*get_version)();
    // Null: an error; its text is in `error`.
    LlgTokenizer* (*new_tokenizer_v2)(const LlgTokenizerInitV2*, char* error, std::size_t n_error);
    void (*free_tokenizer)(LlgTokenizer*);
    // Returns the number of tokens of the bytes, and writes at most n_tokens of them.
    std::size_t (*tokenize_bytes)(const LlgTokenizer*, const std::uint8_t* bytes, std::size_t n,
                                  std::uint32_t* tokens, std::size_t n_tokens);
    void (*constraint_init_set_defaults)(LlgConstraintInit*, const LlgTokenizer*);
    // Never null; matcher_get_error returns the error, if there is one.
    LlgMatcher* (*new_matcher)(const LlgConstraintInit*, const char* type, const char* data);
    LlgMatcher* (*clone_matcher)(const LlgMatcher*);
    void (*free_matcher)(LlgMatcher*);
    const char* (*matcher_get_error)(LlgMatcher*);  // null: none
    std::int32_t (*matcher_compute_mask_into)(LlgMatcher*, std::uint32_t* mask, std::size_t bytes);
    std::size_t (*matcher_get_mask_byte_size)(const LlgMatcher*);
    // Returns the number of leading tokens that can be consumed.
    std::int32_t (*matcher_validate_tokens)(LlgMatcher*, const std::uint32_t*, std::size_t n);
    std::int32_t (*matcher_consume_tokens)(LlgMatcher*, const std::uint32_t*, std::size_t n);
    bool (*matcher_is_stopped)(const LlgMatcher*);
};

// Sets the path of the extension module, which is loaded for the first grammar. "": it is not
// installed.
void set_llguidance_path(const std::string& path);

// Loads the extension module once. Throws InvalidArgument if there is none, or if it has another
// version.
const Llguidance& llguidance();

}  // namespace specllama
