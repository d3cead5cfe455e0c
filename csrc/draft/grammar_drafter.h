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

 private:
    struct Follower {
        Scout scout;
        std::size_t n_followed;  // tokens of the sequence
    };

    const ByteTokens& byte_tokens();
    void read_end(TokenSpan tokens);
    void enter(const Proposal& proposal, Follower& follower);
    void follow(const Proposal& proposal, Follower& follower);
    void draft(const Scout& scout, Proposal& proposal);

    const Vocab* vocab_;
    std::optional<ByteTokens> byte_tokens_;  // once a request has a grammar
    Habits habits_;  // of all requests: where white space comes, a model does not change its mind
    std::map<SequenceId, Follower> followers_;
    std::string text_;               // of the last tokens, and what is foreseen
    std::string piece_;              // of one token
    std::string written_;            // of the tokens of text_
    std::vector<std::size_t> ends_;  // [i]: of token i of these
};

}  // namespace specllama
