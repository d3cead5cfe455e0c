#include "specllama/tokenizer.h"

#include "llama/model.h"
#include "specllama/error.h"
#include "text/utf8.h"

namespace specllama {

namespace {

void check(const Vocab& vocab, Token token) {
    if (!vocab.contains(token))
        throw InvalidArgument("Token " + std::to_string(token) +
                              " is out of range; the model has " + std::to_string(vocab.size()) +
                              " tokens.");
}

}  // namespace

Tokenizer::Tokenizer(const std::string& path) : model_(Model::load_vocabulary(path)) {}

std::vector<Token> Tokenizer::tokenize(std::string_view text, bool add_special,
                                       bool parse_special) const {
    return model_->vocab().tokenize(text, add_special, parse_special);
}

std::string Tokenizer::detokenize(TokenSpan tokens, bool special) const {
    const Vocab& vocab = model_->vocab();
    for (const Token token : tokens) check(vocab, token);
    std::string text;
    append_utf8(vocab.detokenize(tokens, special), true, text);
    return text;
}

bool Tokenizer::is_end(Token token) const {
    check(model_->vocab(), token);
    return model_->vocab().is_end(token);
}

void Tokenizer::append_piece(Token token, std::string& out) const {
    check(model_->vocab(), token);
    model_->vocab().append_piece(token, out);
}

int Tokenizer::n_vocab() const { return model_->vocab().size(); }

std::uint64_t Tokenizer::fingerprint() const { return model_->vocab().text_fingerprint(); }

std::uint64_t Tokenizer::vocabulary() const { return model_->vocab().fingerprint(); }

Token Tokenizer::bos() const { return model_->vocab().bos(); }

Token Tokenizer::eos() const { return model_->vocab().eos(); }

FimTokens Tokenizer::fim() const { return model_->vocab().fim(); }

std::optional<std::string> Tokenizer::chat_template() const { return model_->chat_template(); }

}  // namespace specllama
