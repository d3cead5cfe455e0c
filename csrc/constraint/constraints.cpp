#include "constraint/constraints.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "constraint/grammar.h"
#include "constraint/thought_limit.h"
#include "runtime/gbnf_mask.h"
#include "specllama/error.h"
#include "text/utf8.h"

namespace specllama {

namespace {

// A request looks for each of its triggers in each of its tokens.
constexpr std::size_t kMostTriggers = 1024;
constexpr std::size_t kMostBytes = 4096;  // of one text
constexpr std::size_t kMostBytesTogether = 65536;

void check_triggers(const SamplingOptions& options) {
    const std::vector<std::string>& triggers = options.grammar_triggers;
    if (!triggers.empty() && options.grammar.empty())
        throw InvalidArgument("grammar_triggers need a grammar, or a schema, to begin.");
    if (!triggers.empty() && options.grammar_syntax == GrammarSyntax::gbnf)
        throw InvalidArgument("grammar_triggers need a grammar in llguidance's Lark, not in GBNF.");
    if (triggers.size() > kMostTriggers)
        throw InvalidArgument("grammar_triggers are " + std::to_string(triggers.size()) +
                              " texts; at most 1024 can be waited for.");
    std::size_t n_bytes = 0;
    for (const std::string& one : triggers) {
        if (one.empty() || one.find('\0') != std::string::npos)
            throw InvalidArgument("A text of grammar_triggers is empty or holds a NUL character.");
        if (one.size() > kMostBytes)
            throw InvalidArgument("A text of grammar_triggers has more than 4096 bytes.");
        n_bytes += one.size();
    }
    if (n_bytes > kMostBytesTogether)
        throw InvalidArgument("grammar_triggers have more than 65536 bytes together.");
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
