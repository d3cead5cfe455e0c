#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "draft/constraint/byte_history.h"
#include "draft/constraint/grammar_lookahead.h"
#include "draft/constraint/token_bytes.h"
#include "draft/core_drafter.h"
#include "text/vocabulary.h"

namespace specllama {

// Drafts the tokens that a request's grammar forces, or nearly forces (GrammarLookahead). The
// predicted bytes are tokenized together with the end of the text.
class GrammarDrafter final : public CoreDrafter {
 public:
    // vocab must outlive the drafter.
    explicit GrammarDrafter(const Vocabulary& vocab) : vocab_(&vocab) {}

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<DraftRequest> proposals) override;
    void end(SequenceId sequence) override;

    // The only token that the sampler's mask allows next. If only tokens that end the text are
    // allowed, the first of these. kNoToken: several tokens are allowed, or no draft was proposed
    // for the sequence yet.
    Token forced(SequenceId sequence, TokenSpan tokens, const Sampler& sampler);

 private:
    struct Follower {
        GrammarLookahead lookahead;
        std::size_t n_followed = 0;  // tokens of the sequence that it has followed
    };

    const TokenBytes& token_bytes();
    void read_end(TokenSpan tokens);
    GrammarLookahead* advanced(SequenceId sequence, TokenSpan tokens, const Sampler& sampler);
    void enter(TokenSpan tokens, const Sampler& sampler, std::optional<Follower>& follower);
    void follow(TokenSpan tokens, const Sampler& sampler, std::optional<Follower>& follower);
    void draft(const GrammarLookahead& lookahead, DraftRequest& proposal);

    const Vocabulary* vocab_;
    TokenBytes token_bytes_;  // filled once a request has a grammar
    // Shared by all requests: a model uses white space in the same way in all of them.
    ByteHistory history_;
    // None: the grammar does not support lookahead.
    std::map<SequenceId, std::optional<Follower>> followers_;
    std::string text_;               // text of the last tokens, then the predicted bytes
    std::string piece_;              // bytes of one token
    std::string written_;            // text of the tokens of text_
    std::vector<std::size_t> ends_;  // [i]: end of token i in written_
};

}  // namespace specllama
