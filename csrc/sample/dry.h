#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "specllama/generate_options.h"
#include "specllama/types.h"

namespace specllama {

// Appends a token's text, also that of a special token, to a string.
using AppendText = std::function<void(Token token, std::string& out)>;

// DRY, "don't repeat yourself": penalises tokens that would lengthen a repetition. If the last
// `length` tokens of the text occurred before, the token that followed them there loses multiplier
// * base ^ (length - allowed_length); the longest occurrence counts. Tokens before a sequence
// breaker, such as the end of a line, are not compared, and breakers themselves are not penalised.
// (By the pseudonym p-e-w, text-generation-webui, pull request 5677, 2024.)
class Dry {
 public:
    // append_text: null: there are no texts, and so no breakers.
    Dry(const SamplingOptions& options, AppendText append_text);

    const AppendText& append_text() const { return append_text_; }

    // Whether anything is penalised.
    bool on() const { return multiplier_ > 0 && last_n_ != 0; }

    // Calls take(token, penalty) for each token that would lengthen a repetition at the end of
    // `context`.
    template <typename Take>
    void penalise(TokenSpan context, Take take) {
        find(context);
        for (const Match& match : found_) take(match.token, penalty(match.length));
    }

 private:
    // A token that followed an earlier occurrence of the end of the text, and the length of that
    // occurrence in tokens.
    struct Match {
        Token token;
        std::size_t length;
    };

    void find(TokenSpan context);
    void add(const Match& match);
    void match(TokenSpan last);
    std::size_t behind_breaker(TokenSpan last, std::size_t most);
    bool breaks(Token token);
    void take_text(Token token);
    double penalty(std::size_t length) const;

    double multiplier_;
    double base_;
    std::size_t allowed_length_;
    int last_n_;
    std::vector<std::string> breakers_;  // backwards
    AppendText append_text_;
    std::size_t longest_breaker_ = 0;  // in bytes

    // Kept between calls for their capacity. matched_[k]: number of tokens before the last k that
    // equal those at the end.
    std::vector<std::size_t> matched_;
    std::vector<Match> found_;
    std::string text_;  // of the last tokens, backwards
    std::vector<std::size_t>
        ends_;  // [i]: end of the text of token i, counted from the end, in text_
    std::string piece_;
};

}  // namespace specllama
