#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "specllama/verifier.h"
#include "text/vocabulary.h"

namespace specllama {

// The vocabulary of a remote target: its pieces are here, its tokenizer is remote.
class RemoteVocabulary final : public Vocabulary {
 public:
    explicit RemoteVocabulary(std::shared_ptr<const Verifier> verifier);

    void append_piece(Token token, std::string& out, bool special) const override;
    using Vocabulary::append_piece;
    std::vector<Token> tokenize(std::string_view text, bool add_special, bool parse_special,
                                TextRanges plain) const override;
    using Vocabulary::tokenize;
    std::string detokenize(TokenSpan tokens, bool special) const override;
    std::uint64_t text_fingerprint() const override;

 private:
    std::shared_ptr<const Verifier> verifier_;
    std::vector<bool> hidden_;  // [token]
};

}  // namespace specllama
