#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "draft/sampled_draft.h"
#include "plan/acceptance.h"
#include "sample/sampler.h"
#include "specllama/generate_options.h"
#include "specllama/stats.h"
#include "specllama/trace.h"
#include "specllama/types.h"
#include "text/text_stream.h"
#include "vision/media_chunk.h"

namespace specllama {

class Vocabulary;

// One request: its tokens, those in the KV memory, its text and its statistics.
class Sequence {
 public:
    // n_ctx: most rows of prompt and generation together. mask: the tokens that may be generated;
    // null: all. media: the chunks of the prompt's negative ids. Throws InvalidArgument for options
    // that cannot be met, for example if these options could not have generated
    // GenerateOptions::generated.
    Sequence(const Vocabulary& vocab, TokenSpan prompt, const GenerateOptions& options, int n_ctx,
             std::unique_ptr<Mask> mask = nullptr, const MediaChunks& media = {});

    // Gives the sequence its slot in the KV memory, which already holds its first n_reused tokens
    // (fewer than it has).
    void enter(SequenceId id, int n_reused);
    SequenceId id() const { return id_; }
    int n_reused() const { return n_reused_; }

    // Prompt and generated tokens, one per position. Images and sounds have negative ids (see
    // MediaPrompt).
    TokenSpan tokens() const { return tokens_; }
    // The same without images and sounds, for code that knows only text.
    TokenSpan text_tokens() const { return media_.empty() ? tokens() : TokenSpan(text_tokens_); }
    // Number of text tokens among the first n tokens.
    int n_text(int n) const;
    // Rows of the first n tokens in the KV memory.
    int n_rows(int n) const;
    int n_rows() const { return n_rows(n_tokens()); }
    TokenSpan generated() const { return tokens().subspan(n_prompt_); }
    // Text of the generated tokens.
    const TextStream& text() const { return text_; }
    int n_tokens() const { return static_cast<int>(tokens_.size()); }
    int n_prompt() const { return n_prompt_; }
    int n_generated() const { return n_tokens() - n_prompt_; }

    // Leading tokens that the KV memory holds.
    int n_cached() const { return n_cached_; }
    void set_cached(int n) { n_cached_ = n; }

    // Tokens that the KV memory does not hold yet; at least 1 while not done.
    TokenSpan pending() const { return tokens().subspan(n_cached_); }
    int n_pending() const { return n_tokens() - n_cached_; }
    // The next image or sound that the KV memory does not hold; null: none.
    struct PlacedMedia {
        int begin = 0;
        std::shared_ptr<const MediaChunk> chunk;

        int end() const { return begin + chunk->n_positions(); }
    };
    const PlacedMedia* next_media() const;
    // Tokens after the last image or sound.
    int n_after_media() const {
        return media_.empty() ? n_tokens() : n_tokens() - media_.back().end();
    }
    // Whether the logits after the prompt have not been read yet. Reading them ends the prompt.
    bool in_prompt() const { return in_prompt_; }  // safe from any thread
    void end_prompt() { in_prompt_ = false; }

    int n_tokens_left() const { return static_cast<int>(n_most_ - tokens_.size()); }

    // The token chosen from the target's logits after the last token (see Sampler::choose); if a
    // text is replayed, its token instead.
    Token choose(std::span<float> logits, std::span<const Guess> guesses,
                 std::optional<TokenLogprobs>& logprobs) {
        const Token token = sampler_.choose(logits, text_tokens(), guesses, &logprobs);
        return replayed_.empty() || token == kNoToken ? token : replayed_[generated().size()];
    }
    Sampler& sampler() { return sampler_; }
    // Whether a given text is replayed. Generation then continues past end tokens.
    bool replays() const { return !replayed_.empty(); }
    bool has_grammar() const { return !sampler_.options().grammar.empty(); }
    // Whether it may reuse tokens that the memory already holds.
    bool caches_prompt() const { return caches_prompt_; }
    // Maximum number of tokens of a draft in a row; whether drafters with a step cost, or those
    // without, may draft.
    int spec_length() const { return spec_length_; }
    bool drafts_by(bool has_step_cost) const {
        return spec_type_ == SpecType::automatic ||
               spec_type_ == (has_step_cost ? SpecType::model : SpecType::ngram);
    }
    // The slot that the request needs; -1: any.
    SequenceId wanted_slot() const { return wanted_slot_; }
    // Owner of the earlier requests that it drafts from and will belong to; -1: none.
    int memory_owner() const { return memory_owner_; }
    // The request's own draft, which is only to be verified; null: an ordinary generation.
    const SampledDraft* given() const { return given_ ? &*given_ : nullptr; }

    // Appends a token that the target chose, unless it ends the text. Returns whether the
    // generation continues; if not, tokens that contain a part of a stop string are removed again,
    // and the finish reason is set.
    bool commit(Token token, bool from_draft, std::optional<TokenLogprobs> logprobs = {});

    // Ends the generation; `none`: it was cancelled.
    void finish(FinishReason reason);
    // Ends the generation by an error, which take_chunks throws.
    void fail(std::exception_ptr error = std::current_exception());
    // Requests the end of the generation; safe from any thread.
    void abandon() { abandoned_ = true; }
    bool abandoned() const { return abandoned_; }

    bool done() const { return done_; }  // safe from any thread
    FinishReason finish_reason() const { return finish_reason_; }

    // Replaces `chunks` by the new ones since the last call. If an error ended the generation, the
    // first call after that throws it.
    void take_chunks(std::vector<Chunk>& chunks);
    // Whether take_chunks has returned everything. Safe from any thread.
    bool all_taken() const { return all_taken_; }

    // Whether rounds are traced, and their trace.
    bool traces() const { return traces_; }
    std::vector<RoundTrace> trace;

    Stats stats;

    // Whether its logits were not finite; its values in the memory may then not be finite, either.
    bool spoiled = false;

    // Numbers of prompt tokens at which messages end, in order.
    const std::vector<int>& message_ends() const { return message_ends_; }
    // Numbers of prompt tokens at which the state is saved, in order; chosen by the target.
    std::vector<int> checkpoints;

    // The planner's knowledge of its text.
    TextRegime regime;

 private:
    void append_text(Token token, std::string& bytes) const;
    void place(const MediaChunks& media);

    const Vocabulary* vocab_;

    // The request.
    std::size_t n_most_;  // prompt and generated tokens at which the generation ends
    std::vector<Token> replayed_;
    std::optional<SampledDraft> given_;
    std::vector<int> message_ends_;
    const int n_prompt_;
    int memory_owner_;
    int spec_length_;
    SpecType spec_type_;
    SequenceId wanted_slot_;
    bool caches_prompt_;
    bool traces_;

    // The state.
    std::vector<Token> tokens_;
    std::vector<PlacedMedia> media_;
    std::vector<Token> text_tokens_;  // only with media
    Sampler sampler_;
    TextStream text_;
    std::exception_ptr error_;
    SequenceId id_ = -1;
    int n_cached_ = 0;
    int n_reused_ = 0;
    FinishReason finish_reason_ = FinishReason::none;
    std::atomic<bool> in_prompt_ = true;
    std::atomic<bool> done_ = false;
    std::atomic<bool> abandoned_ = false;
    std::atomic<bool> all_taken_ = false;
};

}  // namespace specllama
