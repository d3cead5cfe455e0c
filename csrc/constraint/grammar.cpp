#include "constraint/grammar.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "constraint/matcher.h"
#include "constraint/trigger.h"

namespace specllama {

namespace {

class Grammar final : public Mask {
 public:
    // awaited: the trigger from which the grammar holds; none: it holds from the start.
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
    // Reads the trigger's text and the rest of its last token. If the rest does not fit, the
    // trigger was none.
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
    std::optional<Trigger> awaited_;   // none: the grammar holds
    std::vector<std::uint32_t> bits_;  // the mask at this place, if computed_
    bool computed_ = false;
};

}  // namespace

std::unique_ptr<Mask> make_grammar(const Vocab& vocab, std::shared_ptr<GrammarCompiler> compiler,
                                   const SamplingOptions& options) {
    Matcher matcher = compiler->compile(options.grammar, options.grammar_syntax);
    std::optional<Trigger> awaited;
    if (!options.grammar_triggers.empty()) awaited.emplace(vocab, options.grammar_triggers);
    return std::make_unique<Grammar>(vocab, std::move(compiler), std::move(matcher),
                                     std::move(awaited));
}

}  // namespace specllama
