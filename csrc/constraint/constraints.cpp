#include "constraint/constraints.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "constraint/matcher.h"
#include "constraint/thought_limit.h"
#include "constraint/trigger.h"
#include "runtime/gbnf_mask.h"
#include "specllama/error.h"
#include "text/utf8.h"

namespace specllama {

namespace {

// A request searches each of its tokens for each of its triggers.
constexpr std::size_t kMostTriggers = 1024;
constexpr std::size_t kMostBytes = 4096;  // of one trigger
constexpr std::size_t kMostBytesTogether = 65536;

void check_triggers(const SamplingOptions& options) {
    const std::vector<std::string>& triggers = options.grammar_triggers;
    if (!triggers.empty() && options.grammar.empty())
        throw InvalidArgument(
            "grammar_triggers need a grammar or a schema; set one, or leave them out.");
    if (!triggers.empty() && options.grammar_syntax == GrammarSyntax::gbnf)
        throw InvalidArgument("grammar_triggers need a grammar in llguidance's Lark, not in GBNF.");
    if (triggers.size() > kMostTriggers)
        throw InvalidArgument("grammar_triggers has " + std::to_string(triggers.size()) +
                              " texts; at most 1024 are allowed.");
    std::size_t n_bytes = 0;
    for (const std::string& one : triggers) {
        if (one.empty() || one.find('\0') != std::string::npos)
            throw InvalidArgument(
                "A text of grammar_triggers is empty or contains a NUL character.");
        if (one.size() > kMostBytes)
            throw InvalidArgument("A text of grammar_triggers has more than 4096 bytes.");
        n_bytes += one.size();
    }
    if (n_bytes > kMostBytesTogether)
        throw InvalidArgument("grammar_triggers have more than 65536 bytes together.");
}

// The mask of a grammar. It throws DecodeError if the grammar takes too much work.
class Grammar final : public Mask {
 public:
    // awaited: the trigger that starts the grammar; nullopt: the grammar applies from the start.
    Grammar(const Vocab& vocab, std::shared_ptr<GrammarCompiler> compiler, Matcher matcher,
            std::optional<Trigger> awaited)
        : vocab_(vocab),
          compiler_(std::move(compiler)),
          matcher_(std::move(matcher)),
          awaited_(std::move(awaited)),
          bits_(matcher_.n_words()) {}

    Bits allowed() override {
        if (awaited_) return {};
        if (!std::exchange(computed_, true)) matcher_.mask(bits_);
        return bits_;
    }

    std::size_t n_allowed(TokenSpan tokens) override {
        if (awaited_) return tokens.size();
        if (matcher_.stopped()) return !tokens.empty() && vocab_.is_end(tokens[0]) ? 1 : 0;
        return matcher_.n_allowed(tokens);
    }

    void accept(Token token) override {
        computed_ = false;
        if (!awaited_)
            matcher_.consume({&token, 1});
        else if (awaited_->push(token))
            begin();
    }

    bool begun() const override { return !awaited_; }

    std::unique_ptr<Mask> clone() const override {
        return std::make_unique<Grammar>(vocab_, compiler_, matcher_.clone(), awaited_);
    }

 private:
    // Reads the trigger's text and the rest of its last token. If the rest does not fit the
    // grammar, the text does not count as a trigger.
    void begin() {
        const std::vector<Token> tokens = compiler_->tokenize(awaited_->found());
        if (matcher_.n_allowed(tokens) == tokens.size()) {
            matcher_.consume(tokens);
            awaited_.reset();
        } else {
            awaited_->restart();
        }
    }

    const Vocab& vocab_;
    std::shared_ptr<GrammarCompiler> compiler_;  // outlives the matcher
    Matcher matcher_;
    std::optional<Trigger> awaited_;   // nullopt: the grammar applies
    std::vector<std::uint32_t> bits_;  // the current mask, if computed_
    bool computed_ = false;
};

// Throws InvalidArgument if the grammar cannot be read.
std::unique_ptr<Mask> make_grammar(const Vocab& vocab, std::shared_ptr<GrammarCompiler> compiler,
                                   const SamplingOptions& options) {
    Matcher matcher = compiler->compile(options.grammar, options.grammar_syntax);
    std::optional<Trigger> awaited;
    if (!options.grammar_triggers.empty()) awaited.emplace(vocab, options.grammar_triggers);
    return std::make_unique<Grammar>(vocab, std::move(compiler), std::move(matcher),
                                     std::move(awaited));
}

}  // namespace

void Constraints::check(const Vocab& vocab, const SamplingOptions& options) {
    check_triggers(options);
    if (options.grammar.empty()) return;
    if (find_invalid_utf8(options.grammar) != std::string::npos)
        throw InvalidArgument("The grammar is not valid UTF-8.");
    if (options.grammar_syntax != GrammarSyntax::gbnf)
        compiler(vocab)->compile(options.grammar, options.grammar_syntax);
}

std::unique_ptr<Mask> Constraints::make(const Vocab& vocab, const SamplingOptions& options) {
    std::unique_ptr<Mask> grammar;
    if (options.grammar_syntax == GrammarSyntax::gbnf && !options.grammar.empty())
        grammar = make_gbnf_mask(vocab, options.grammar);
    else if (!options.grammar.empty())
        grammar = make_grammar(vocab, compiler(vocab), options);
    return limit_thought(vocab, options, std::move(grammar));
}

std::shared_ptr<GrammarCompiler> Constraints::compiler(const Vocab& vocab) {
    const std::lock_guard lock(mutex_);
    if (!compiler_) compiler_ = GrammarCompiler::of(vocab);
    return compiler_;
}

}  // namespace specllama
