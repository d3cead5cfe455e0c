#include "engine/target/remote_vocabulary.h"

#include <utility>

namespace specllama {

RemoteVocabulary::RemoteVocabulary(std::shared_ptr<const Verifier> verifier)
    : Vocabulary(static_cast<int>(verifier->info().vocabulary.pieces.size()),
                 verifier->info().vocabulary.ends),
      verifier_(std::move(verifier)),
      hidden_(size()) {
    const VocabularyTable& table = verifier_->info().vocabulary;
    check(table.hidden, "vocabulary");
    check(table.ends, "vocabulary");
    for (const Token token : table.hidden) hidden_[token] = true;
}

void RemoteVocabulary::append_piece(Token token, std::string& out, bool special) const {
    if (special || !hidden_[token]) out += verifier_->info().vocabulary.pieces[token];
}

std::vector<Token> RemoteVocabulary::tokenize(std::string_view text, bool add_special,
                                              bool parse_special, TextRanges plain) const {
    return verifier_->tokenize(text, add_special, parse_special, plain);
}

std::string RemoteVocabulary::detokenize(TokenSpan tokens, bool special) const {
    check(tokens);
    return verifier_->detokenize(tokens, special);
}

std::uint64_t RemoteVocabulary::text_fingerprint() const {
    return verifier_->info().vocabulary.text_fingerprint;
}

}  // namespace specllama
