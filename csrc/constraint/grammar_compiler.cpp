#include "constraint/grammar_compiler.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "specllama/error.h"
#include "system/big_stack.h"

namespace specllama {

namespace {

// A matcher of a large schema takes some megabytes.
constexpr std::size_t kMostCompiled = 16;
constexpr std::size_t kLongestReason = 300;

constexpr std::size_t kMostBytes = std::size_t{256} << 10;
constexpr std::size_t kStack = std::size_t{8} << 20;
constexpr std::size_t kStackOfByte = 1024;

// llguidance marks tokens that match no text with this byte.
constexpr char kSpecial = '\xFF';

constexpr LlgParserLimits kLimits{
    .max_items_in_row = 5000,         // four for each possible next optional property
    .initial_lexer_fuel = 1'000'000,  // 20 ms
    .step_lexer_fuel = 200'000,       // 15 ms
    .step_max_items = 200'000,        // 10 ms
    .max_lexer_states = 250'000,
    .max_grammar_size = 500'000,
    .precompute_large_lexemes = true,
    .verbose_errors = false,
};

const char* name_of(GrammarSyntax syntax) {
    switch (syntax) {
        case GrammarSyntax::regex:
            return "regex";
        case GrammarSyntax::json_schema:
            return "json_schema";
        default:
            return "lark";
    }
}

// The first lines of a message; the rest shows the place in the grammar.
std::string shortened(std::string_view reason) {
    std::string text(reason.substr(0, kLongestReason));
    while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
    return text;
}

}  // namespace

std::shared_ptr<GrammarCompiler> GrammarCompiler::of(const Vocab& vocab) {
    static std::mutex mutex;
    static std::map<std::uint64_t, std::weak_ptr<GrammarCompiler>> by_vocabulary;
    const std::uint64_t key = vocab.fingerprint();
    const std::lock_guard lock(mutex);
    std::weak_ptr<GrammarCompiler>& known = by_vocabulary[key];
    std::shared_ptr<GrammarCompiler> compiler = known.lock();
    if (!compiler) known = compiler = std::make_shared<GrammarCompiler>(vocab);
    return compiler;
}

GrammarCompiler::GrammarCompiler(const Vocab& vocab) {
    std::vector<std::uint32_t> lengths;
    std::string bytes;
    for (Token token = 0; token < vocab.size(); ++token) {
        const std::size_t before = bytes.size();
        if (!vocab.is_end(token)) vocab.append_piece(token, bytes);
        if (bytes.size() == before) {
            bytes += kSpecial;
            vocab.append_piece(token, bytes, true);
        }
        lengths.push_back(static_cast<std::uint32_t>(bytes.size() - before));
    }
    LlgTokenizerInitV2 init{};
    init.struct_size = sizeof(init);
    init.vocab_size = vocab.size();
    init.token_lens = lengths.data();
    init.token_bytes = reinterpret_cast<const std::uint8_t*>(bytes.data());
    // Only used for bytes apart from a text: see tokenize.
    init.use_approximate_greedy_tokenize_fn = true;
    const std::vector<std::uint32_t> ends(vocab.ends().begin(), vocab.ends().end());
    constexpr std::uint32_t kNone = 0xFFFFFFFF;
    init.tok_eos = ends.empty() ? kNone : ends[0];
    if (ends.size() > 1) {
        init.tok_eos_extra = ends.data() + 1;
        init.tok_eos_extra_count = static_cast<std::uint32_t>(ends.size() - 1);
    }
    std::array<char, 512> error{};
    tokenizer_.reset(llguidance().new_tokenizer_v2(&init, error.data(), error.size()));
    if (!tokenizer_)
        throw InvalidArgument(
            "Grammars are not supported for this vocabulary: " + shortened(error.data()) + ".");
}

Matcher GrammarCompiler::compile(const std::string& grammar, GrammarSyntax syntax) {
    const auto copy_known = [&]() -> std::optional<Matcher> {
        const std::lock_guard lock(mutex_);
        const auto found = std::ranges::find_if(compiled_, [&](const Compiled& one) {
            return one.syntax == syntax && one.grammar == grammar;
        });
        if (found == compiled_.end()) return std::nullopt;
        compiled_.splice(compiled_.begin(), compiled_, found);
        return found->matcher.clone();
    };
    if (std::optional<Matcher> known = copy_known()) return std::move(*known);
    Matcher matcher = read(grammar, syntax);
    const std::lock_guard lock(mutex_);
    compiled_.push_front({grammar, syntax, matcher.clone()});
    if (compiled_.size() > kMostCompiled) compiled_.pop_back();
    return matcher;
}

Matcher GrammarCompiler::read(const std::string& grammar, GrammarSyntax syntax) const {
    if (grammar.find('\0') != std::string::npos)
        throw InvalidArgument("The grammar has a NUL character; leave it out.");
    if (grammar.size() > kMostBytes)
        throw InvalidArgument("The grammar has " + std::to_string(grammar.size()) +
                              " bytes; at most 262144 are allowed.");
    LlgConstraintInit init{};
    llguidance().constraint_init_set_defaults(&init, tokenizer_.get());
    init.log_buffer_level = init.log_stderr_level = 0;
    init.limits = kLimits;
    // llguidance parses rules that refer to rules, and nested expressions, recursively.
    LlgMatcher* made = nullptr;
    with_stack(kStack + grammar.size() * kStackOfByte,
               [&] { made = llguidance().new_matcher(&init, name_of(syntax), grammar.c_str()); });
    Matcher matcher(made);
    if (const char* const error = matcher.error())
        throw InvalidArgument("The grammar cannot be read: " + shortened(error) + ".");
    return matcher;
}

std::vector<Token> GrammarCompiler::tokenize(std::string_view bytes) const {
    std::vector<Token> tokens(bytes.size());
    const std::size_t n = llguidance().tokenize_bytes(
        tokenizer_.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(),
        reinterpret_cast<std::uint32_t*>(tokens.data()), tokens.size());
    tokens.resize(std::min(n, tokens.size()));
    return tokens;
}

}  // namespace specllama
