#include "engine/sequence.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "specllama/error.h"
#include "text/vocabulary.h"

namespace specllama {

namespace {

// Adds a bias of minus infinity for end tokens if ignore_eos is set.
SamplingOptions resolved(SamplingOptions options, const Vocabulary& vocab) {
    if (options.ignore_eos)
        for (const Token token : vocab.ends())
            options.logit_bias.emplace_back(token, -std::numeric_limits<float>::infinity());
    return options;
}

SampledDraft to_draft(const RequestDraft& given) {
    const Evidence unknown = {.source = Source::other, .confidence = 1};
    SampledDraft draft;
    for (const Token token : given.tokens) draft.push(token, unknown);
    for (const auto& [depth, branch] : given.branches) {
        draft.push_branch(depth, branch.front(), unknown);
        for (const Token token : TokenSpan(branch).subspan(1)) draft.extend_branch(token, unknown);
    }
    return draft;
}

}  // namespace

Sequence::Sequence(const Vocabulary& vocab, TokenSpan prompt, const GenerateOptions& options,
                   int n_ctx, std::unique_ptr<Mask> mask, const MediaChunks& media)
    : vocab_(&vocab),
      n_most_(n_ctx),
      replayed_(options.replayed),
      message_ends_(options.message_ends),
      n_prompt_(static_cast<int>(prompt.size())),
      memory_owner_(options.remember && !options.draft ? options.memory_owner : -1),
      spec_length_(
          options.spec_type == SpecType::none ? 0 : options.spec_length.value_or(kMaxSpecLength)),
      spec_type_(options.spec_type),
      wanted_slot_(options.id_slot),
      caches_prompt_(options.cache_prompt),
      traces_(options.trace),
      sampler_(resolved(options.sampling, vocab), vocab.size(), std::move(mask),
               [&vocab](Token token, std::string& out) { vocab.append_piece(token, out, true); }),
      text_(options.stop) {
    if (message_ends_.empty())
        for (int i = 0; i < n_prompt_; ++i)
            if (!is_media(prompt[i]) && vocab.ends_message(prompt[i]))
                message_ends_.push_back(i + 1);
    // An image is decoded whole.
    std::erase_if(message_ends_, [&](int end) {
        return end < n_prompt_ && is_media(prompt[end]) && !begins_media(prompt[end]);
    });
    if (options.draft) given_ = to_draft(*options.draft);
    tokens_.assign(prompt.begin(), prompt.end());
    place(media);
    n_most_ -= n_rows() - n_tokens();
    const int max_tokens = options.max_tokens.value_or(kDefaultMaxTokens);
    if (max_tokens >= 0)
        n_most_ = std::min(n_most_, prompt.size() + static_cast<std::size_t>(max_tokens));
    if (!replayed_.empty()) n_most_ = std::min(n_most_, prompt.size() + replayed_.size());
    // The round loop appends to these without allocating.
    tokens_.reserve(n_most_);
    if (!media_.empty()) text_tokens_.reserve(n_most_);
    stats.by_round.reserve(n_most_ - prompt.size());
    stats.drafted_by_position.reserve(kMaxSpecLength);
    stats.accepted_by_position.reserve(kMaxSpecLength);
    stats.drafted_by_rank.reserve(kMaxTreeWidth);
    stats.accepted_by_rank.reserve(kMaxTreeWidth);

    stats.prompt_tokens = n_rows();
    stats.seed = sampler_.seed();
    for (const Token token : options.generated) {
        if (done_ || vocab_->is_end(token) || !sampler_.allows(token))
            throw InvalidArgument("`generated` contains token " + std::to_string(token) +
                                  ", but the text ends before it, or the grammar or "
                                  "reasoning_budget forbids it there.");
        commit(token, false);
    }
}

void Sequence::place(const MediaChunks& media) {
    if (media.empty()) return;
    for (int i = 0; i < n_prompt_; ++i) {
        if (!is_media(tokens_[i]))
            text_tokens_.push_back(tokens_[i]);
        else if (begins_media(tokens_[i]))
            media_.push_back({i, media[media_.size()]});
    }
}

int Sequence::n_text(int n) const {
    int n_text = n;
    for (const PlacedMedia& one : media_)
        if (one.end() <= n) n_text -= one.chunk->n_positions();
    return n_text;
}

int Sequence::n_rows(int n) const {
    int n_rows = n;
    for (const PlacedMedia& one : media_)
        if (one.end() <= n) n_rows += one.chunk->n_rows() - one.chunk->n_positions();
    return n_rows;
}

const Sequence::PlacedMedia* Sequence::next_media() const {
    const auto next = std::ranges::lower_bound(media_, n_cached_, {}, &PlacedMedia::begin);
    return next == media_.end() ? nullptr : &*next;
}

void Sequence::enter(SequenceId id, int n_reused) {
    id_ = id;
    n_cached_ = n_reused_ = n_reused;
    stats.reused_tokens = n_rows(n_reused);
    stats.slot = id;
}

bool Sequence::commit(Token token, bool from_draft, std::optional<TokenLogprobs> logprobs) {
    if (vocab_->is_end(token) && replayed_.empty()) {
        finish(FinishReason::stop);
        return false;
    }
    sampler_.accept(token);
    tokens_.push_back(token);
    if (!media_.empty()) text_tokens_.push_back(token);
    const bool stopped = text_.push(token, from_draft, std::move(logprobs),
                                    [&](std::string& bytes) { append_text(token, bytes); });
    if (stopped) {
        tokens_.resize(n_prompt_ + text_.n_kept());
        if (!media_.empty()) text_tokens_.resize(n_text(n_tokens()));
        finish(FinishReason::stop);
    } else if (n_tokens_left() == 0) {
        finish(FinishReason::length);
    }
    stats.generated_tokens = n_generated();
    return !done_;
}

// Control tokens have no text, except one whose text is a stop string.
void Sequence::append_text(Token token, std::string& bytes) const {
    const std::size_t before = bytes.size();
    vocab_->append_piece(token, bytes);
    if (bytes.size() > before || !text_.has_stops()) return;
    vocab_->append_piece(token, bytes, true);
    if (!text_.is_stop(std::string_view(bytes).substr(before))) bytes.resize(before);
}

void Sequence::finish(FinishReason reason) {
    done_ = true;
    finish_reason_ = reason;
}

void Sequence::fail(std::exception_ptr error) {
    finish(FinishReason::none);
    error_ = std::move(error);
}

void Sequence::take_chunks(std::vector<Chunk>& chunks) {
    chunks.clear();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    // A text whose draft was verified continues: what may become a stop string stays held back.
    const bool continues = given_ && finish_reason_ == FinishReason::none;
    text_.take(done_ && !continues, finish_reason_, chunks);
    all_taken_ = done();
}

}  // namespace specllama
