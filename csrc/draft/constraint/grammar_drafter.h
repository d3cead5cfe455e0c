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

// Drafts what a request's grammar forces, or nearly forces: see GrammarLookahead. The predicted
// bytes become the tokens that the tokenizer makes of them when it reads them together with the end
// of the text.
class GrammarDrafter final : public CoreDrafter {
 public:
    // vocab must outlive the drafter.
    explicit GrammarDrafter(const Vocabulary& vocab) : vocab_(&vocab) {}

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<DraftRequest> proposals) override;
    void end(SequenceId sequence) override;

    // The only token that the sampler's mask allows next or, if only tokens that end the text are
    // allowed, the first of these. kNoToken: there is a choice. Always kNoToken before the first
    // draft was proposed for the sequence.
    Token forced(SequenceId sequence, TokenSpan tokens, const Sampler& sampler);

 private:
    struct Follower {
        GrammarLookahead lookahead;
        std::size_t n_followed = 0;  // tokens of the sequence that it knows
    };

    const TokenBytes& token_bytes();
    void read_end(TokenSpan tokens);
    GrammarLookahead* advanced(SequenceId sequence, TokenSpan tokens, const Sampler& sampler);
    void enter(TokenSpan tokens, const Sampler& sampler, std::optional<Follower>& follower);
    void follow(TokenSpan tokens, const Sampler& sampler, std::optional<Follower>& follower);
    void draft(const GrammarLookahead& lookahead, DraftRequest& proposal);

    const Vocabulary* vocab_;
    TokenBytes token_bytes_;  // filled once a request has a grammar
    // Shared by all requests: a model does not change its mind about white space.
    ByteHistory history_;
    // None: the grammar cannot be looked ahead of.
    std::map<SequenceId, std::optional<Follower>> followers_;
    std::string text_;               // text of the last tokens, then the predicted bytes
    std::string piece_;              // bytes of one token
    std::string written_;            // text of the tokens that text_ becomes
    std::vector<std::size_t> ends_;  // [i]: where token i of these ends in written_
};

}  // namespace specllama
