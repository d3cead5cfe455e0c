#include "text/vocabulary.h"

#include <algorithm>
#include <string>

#include "specllama/error.h"

namespace specllama {

VocabularyTable Vocabulary::table() const {
    VocabularyTable table;
    table.pieces.resize(size());
    std::string shown;
    for (Token token = 0; token < size(); ++token) {
        std::string& piece = table.pieces[token];
        append_piece(token, piece, true);
        shown.clear();
        append_piece(token, shown);
        if (shown.empty() && !piece.empty()) table.hidden.push_back(token);
    }
    table.ends.assign(ends().begin(), ends().end());
    table.text_fingerprint = text_fingerprint();
    return table;
}

void Vocabulary::check(TokenSpan tokens, const std::string& what) const {
    const auto wrong = std::ranges::find_if(tokens, [&](Token token) { return !contains(token); });
    if (wrong == tokens.end()) return;
    throw InvalidArgument("Token " + std::to_string(*wrong) +
                          (what.empty() ? "" : " in the " + what) +
                          " is out of range; the model has " + std::to_string(size()) + " tokens.");
}

}  // namespace specllama
