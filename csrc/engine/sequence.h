#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "sample/sampler.h"
#include "specllama/config.h"
#include "specllama/stats.h"
#include "specllama/trace.h"
#include "specllama/types.h"
#include "text/text_stream.h"

namespace specllama {

class Vocab;

// One request: its tokens, what the KV memory holds of them, its text and its statistics.
class Sequence {
 public:
    // n_ctx: most tokens that prompt and generation may come to. Throws InvalidArgument for options
    // that cannot be met, among them a text said to be generated that cannot have been.
    Sequence(const Vocab& vocab, TokenSpan prompt, const GenerateOptions& options, int n_ctx);

    // Gives it its place in the KV memory, which holds n_reused leading prompt tokens already;
    // fewer than there are.
    void enter(SequenceId id, int n_reused);
    SequenceId id() const { return id_; }

    // Prompt and generated tokens.
    TokenSpan tokens() const { return tokens_; }
    TokenSpan generated() const { return tokens().subspan(stats.prompt_tokens); }
    // Of the generated tokens.
    const TextStream& text() const { return text_; }
    int n_tokens() const { return static_cast<int>(tokens_.size()); }

    // Leading tokens that the KV memory holds.
    int n_cached() const { return n_cached_; }
    void set_cached(int n) { n_cached_ = n; }

    // Tokens that the KV memory does not hold yet; at least 1 while not done.
    TokenSpan pending() const { return tokens().subspan(n_cached_); }
    // Whether the prompt's own logits have not been read yet.
    bool in_prompt() const { return stats.rounds == 0; }

    int n_tokens_left() const { return static_cast<int>(n_most_ - tokens_.size()); }

    // The token that the target's logits after the last token call for, see Sampler::verify; or,
    // where a text is replayed, that text's.
    Token verify(std::span<float> logits, std::span<const Guess> guesses) {
        const Token token = sampler_.verify(logits, tokens_, guesses, &logprobs_);
        return replayed_.empty() || token == kNoToken ? token : replayed_[generated().size()];
    }
    Sampler& sampler() { return sampler_; }
    // Whether a given text is replayed: it goes on behind tokens that would end a generation.
    bool replays() const { return !replayed_.empty(); }
    // Whether it waits before each round but the first for a draft from outside.
    bool paced() const { return paced_; }
    bool has_grammar() const { return !sampler_.options().grammar.empty(); }

    // Appends a token that the target chose. Returns whether the generation goes on. If not, what
    // a stop string touches has been taken off again and the reason is set.
    bool commit(Token token, bool from_draft);

    // Ends the generation for a reason, `none` for one that its reader left.
    void finish(FinishReason reason);
    // Ends it by an error, which take_chunks throws.
    void fail(std::exception_ptr error);
    // Asks for its end; may be called from any thread.
    void abandon() { abandoned_ = true; }
    bool abandoned() const { return abandoned_; }

    bool done() const { return done_; }
    FinishReason finish_reason() const { return finish_reason_; }

    // Replaces `chunks` by what became certain since the last call. The error that ended the
    // generation, if one did, is thrown by the first call after it, once.
    void take_chunks(std::vector<Chunk>& chunks);
    // Whether take_chunks has nothing more to give. May be asked from any thread.
    bool all_taken() const { return all_taken_; }

    // Whether rounds are traced, and those that were.
    bool traces() const { return traces_; }
    std::vector<RoundTrace> trace;

    Stats stats;

    // The number by which Offers know this request; 0: it takes none.
    std::uint64_t ticket = 0;

 private:
    SequenceId id_ = -1;
    const Vocab* vocab_;
    std::vector<Token> tokens_;
    std::size_t n_most_;  // prompt and generated tokens at which it ends
    int n_cached_ = 0;
    Sampler sampler_;
    std::vector<Token> replayed_;
    std::optional<TokenLogprobs> logprobs_;  // of the token chosen last
    TextStream text_;
    bool traces_;
    bool paced_;
    bool done_ = false;
    std::exception_ptr error_;
    std::atomic<bool> abandoned_ = false;
    std::atomic<bool> all_taken_ = false;
    FinishReason finish_reason_ = FinishReason::none;
};

}  // namespace specllama
