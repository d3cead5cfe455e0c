#include "specllama/tokenizer.h"

#include "llama/model.h"

namespace specllama {

Tokenizer::Tokenizer(const std::string& path) : model_(Model::load_vocabulary(path)) {}

std::vector<Token> Tokenizer::tokenize(std::string_view text) const {
    return model_->vocab().tokenize(text, false, true);
}

int Tokenizer::n_vocab() const { return model_->vocab().size(); }

std::uint64_t Tokenizer::fingerprint() const { return model_->vocab().text_fingerprint(); }

}  // namespace specllama
