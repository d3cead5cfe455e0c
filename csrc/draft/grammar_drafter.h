#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "draft/byte_tokens.h"
#include "draft/habits.h"
#include "draft/scout.h"
#include "llama/vocab.h"
#include "specllama/drafter.h"

namespace specllama {

// Drafts what a request's grammar leaves no choice about, or hardly one: see Scout. The bytes
// become the tokens that the text so far would go on with if it were written at once.
class GrammarDrafter final : public Drafter {
 public:
    // vocab: must outlive it.
    explicit GrammarDrafter(const Vocab& vocab) : vocab_(&vocab) {}

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<Proposal> proposals) override;
    void end(SequenceId sequence) override;

    // The only token that the sampler's mask lets come next, or one of those that end the text
    // where nothing else may come; kNoToken: there is a choice, or may be one. It is only looked
    // for where a draft was proposed.
    Token certain(SequenceId sequence, TokenSpan tokens, Sampler& sampler);

 private:
    struct Follower {
        Scout scout;
        std::size_t n_followed;  // tokens of the sequence
    };

    const ByteTokens& byte_tokens();
    void read_end(TokenSpan tokens);
    Scout* look(SequenceId sequence, TokenSpan tokens, const Sampler& sampler);
    void enter(TokenSpan tokens, const Sampler& sampler, Follower& follower);
    void follow(TokenSpan tokens, const Sampler& sampler, Follower& follower);
    void draft(const Scout& scout, Proposal& proposal);

    const Vocab* vocab_;
    std::optional<ByteTokens> byte_tokens_;  // once a request has a grammar
    Habits habits_;  // of all requests: where white space comes, a model does not change its mind
    std::map<SequenceId, Follower> followers_;
    std::vector<Token> left_;        // what a mask leaves of all tokens
    std::string text_;               // of the last tokens, and what is foreseen
    std::string piece_;              // of one token
    std::string written_;            // of the tokens of text_
    std::vector<std::size_t> ends_;  // [i]: of token i of these
};

}  // namespace specllama
