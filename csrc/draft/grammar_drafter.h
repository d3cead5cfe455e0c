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

// Drafts what a request's grammar forces, or nearly forces: see Scout. The foreseen bytes become
// the tokens that the tokenizer makes of them when it reads them together with the end of the text.
class GrammarDrafter final : public Drafter {
 public:
    // vocab must outlive the drafter.
    explicit GrammarDrafter(const Vocab& vocab) : vocab_(&vocab) {}

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<Proposal> proposals) override;
    void end(SequenceId sequence) override;

    // The only token that the sampler's mask allows next or, if only tokens that end the text are
    // allowed, the first of these. kNoToken: there is a choice, or may be one. Always kNoToken
    // before the first draft was proposed for the sequence.
    Token certain(SequenceId sequence, TokenSpan tokens, Sampler& sampler);

 private:
    struct Follower {
        Scout scout;
        std::size_t n_followed;  // tokens of the sequence that the scout knows
    };

    const ByteTokens& byte_tokens();
    void read_end(TokenSpan tokens);
    Scout* look(SequenceId sequence, TokenSpan tokens, const Sampler& sampler);
    void enter(TokenSpan tokens, const Sampler& sampler, Follower& follower);
    void follow(TokenSpan tokens, const Sampler& sampler, Follower& follower);
    void draft(const Scout& scout, Proposal& proposal);

    const Vocab* vocab_;
    std::optional<ByteTokens> byte_tokens_;  // made once a request has a grammar
    Habits habits_;  // shared by all requests: a model does not change its mind about white space
    std::map<SequenceId, Follower> followers_;
    std::vector<Token> left_;        // tokens of the vocabulary that a mask allows
    std::string text_;               // text of the last tokens, then the foreseen bytes
    std::string piece_;              // bytes of one token
    std::string written_;            // text of the tokens that text_ becomes
    std::vector<std::size_t> ends_;  // [i]: where token i of these ends in written_
};

}  // namespace specllama
