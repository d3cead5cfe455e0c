#include "specllama/tokenizer.h"

#include "runtime/model.h"

namespace specllama {

Tokenizer::Tokenizer(const std::string& path) : model_(Model::load_vocabulary(path)) {}

std::vector<Token> Tokenizer::tokenize(std::string_view text, bool add_special, bool parse_special,
                                       TextRanges plain) const {
    return model_->vocab().tokenize(text, add_special, parse_special, plain);
}

std::string Tokenizer::detokenize(TokenSpan tokens, bool special) const {
    return model_->vocab().detokenize(tokens, special);
}

bool Tokenizer::is_end(Token token) const {
    model_->vocab().check({&token, 1});
    return model_->vocab().is_end(token);
}

void Tokenizer::append_piece(Token token, std::string& out) const {
    model_->vocab().check({&token, 1});
    model_->vocab().append_piece(token, out);
}

int Tokenizer::n_vocab() const { return model_->vocab().size(); }

std::uint64_t Tokenizer::fingerprint() const { return model_->vocab().text_fingerprint(); }

std::uint64_t Tokenizer::vocabulary() const { return model_->vocab().fingerprint(); }

VocabularyTable Tokenizer::vocabulary_table() const { return model_->vocab().table(); }

Token Tokenizer::bos() const { return model_->vocab().bos(); }

Token Tokenizer::eos() const { return model_->vocab().eos(); }

FimTokens Tokenizer::fim() const { return model_->vocab().fim(); }

std::optional<std::string> Tokenizer::chat_template() const { return model_->chat_template(); }

}  // namespace specllama
