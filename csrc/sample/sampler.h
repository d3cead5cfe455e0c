#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sample/candidates.h"
#include "sample/distribution.h"
#include "sample/mask.h"
#include "sample/noise.h"
#include "sample/rejection.h"
#include "specllama/config.h"
#include "specllama/types.h"

namespace specllama {

// Every token is forbidden, by the grammar or by logit_bias.
inline constexpr Token kNothingLeft = -2;

// Throws InvalidArgument when an option is out of range, for a model of n_vocab tokens. Of a
// grammar nothing is said.
void check(const SamplingOptions& options, std::size_t n_vocab);

// The choice rule: argmax over the kept tokens of logit / T + gumbel(seed, position, token), which
// is a draw from the softmax at temperature T; T = 0 drops the noise.
//
// The noise is a pure function, so the target's token at a position is the same whether its logits
// were computed alone or inside a draft: the output does not depend on who drafts. (Coupling by
// common noise: Daliri, Musco, Suresh, "Coupling without communication and drafter-invariant
// speculative decoding", 2024, section 3.) With AcceptanceRule::rejection that holds for tokens
// that nobody drafted; what was drafted is judged by speculative sampling (rejection.h), with noise
// of its own.
//
// Nothing here allocates, but for log-probabilities and grammars. The same calls give the same
// tokens; only the grammar keeps a state.
class Sampler {
 public:
    // Allocates for rows of n_vocab logits. Throws as `check` does.
    Sampler(const SamplingOptions& options, std::size_t n_vocab,
            std::unique_ptr<Mask> mask = nullptr);

    // As given, with the seed that is used.
    const SamplingOptions& options() const { return options_; }
    std::uint64_t seed() const { return *options_.seed; }
    std::size_t n_vocab() const { return n_vocab_; }
    // Whether drafts must be drawn, from a distribution that is then told to `verify`.
    bool rejects() const {
        return options_.acceptance == AcceptanceRule::rejection && options_.temperature > 0;
    }

    // The target's token after `context`, all tokens of the sequence so far, where these guesses
    // were proposed, no two of them alike. The one that comes back, if one does, is accepted.
    // `logits` [n_vocab] are changed. kNoToken when they hold a NaN; kNothingLeft.
    // Where logprobs are asked for, those of the token are written to `logprobs`.
    Token verify(std::span<float> logits, TokenSpan context, std::span<const Guess> guesses = {},
                 std::optional<TokenLogprobs>* logprobs = nullptr);

    // The sequence goes on with this token, which `verify` gave and which does not end it.
    void accept(Token token) {
        if (mask_) mask_->accept(token);
    }

    // Whether the grammar, if there is one, lets this token come next.
    bool allows(Token token) const { return !mask_ || mask_->allows(token); }

    // Moves those of `tokens` that the grammar, if there is one, lets come next to the front;
    // returns how many.
    std::size_t keep_allowed(std::span<Token> tokens) const {
        return mask_ ? mask_->keep_allowed(tokens) : tokens.size();
    }

    // What may come next; null: anything.
    const Mask* mask() const { return mask_.get(); }

    // A drafter's token after `context`, from the logits of a model of its own (changed), by the
    // same rule, and coupled by the same noise. With `rejects()`, what it was drawn from is
    // written to `drawn_from`. kNoToken and kNothingLeft as above. The grammar is not asked.
    // `beside`, at most kMaxGuesses - 1, is filled with what would come if that token, and those
    // before in `beside`, were forbidden, kNoToken where nothing is left. So guesses are drawn
    // without replacement. (Kool, van Hoof, Welling, "Stochastic beams and where to find them",
    // 2019, section 2.3.)
    Token draft(std::span<float> logits, TokenSpan context, Distribution& drawn_from,
                std::span<Token> beside = {});

    // The same for a drafter that has probabilities; at temperature 0 the likeliest.
    Token draft(const Distribution& distribution, Position position) const;

 private:
    void shift(std::span<float> logits, TokenSpan context);
    void penalise(std::span<float> logits, TokenSpan context);
    Token pick(std::span<const float> logits, Noise noise);
    Token pick(std::span<float> logits, Noise noise, std::span<Token> beside);
    static Token pick_likeliest(std::span<float> logits, std::span<Token> beside);
    Token verify_shifted(std::span<float> logits, Position position,
                         std::span<const Guess> guesses);
    Token judge_guesses(std::span<const float> logits, Position position,
                        std::span<const Guess> guesses);
    TokenLogprobs processed(std::span<float> logits, Token token);
    Token likeliest(std::span<const float> logits);
    template <typename Consider>
    void each_left(std::span<const float> logits, Noise noise, const double& best,
                   Consider consider);
    NoiseStream draft_stream() const {
        return rejects() ? NoiseStream::draft : NoiseStream::choose;
    }

    SamplingOptions options_;
    std::size_t n_vocab_;
    std::unique_ptr<Mask> mask_;
    bool penalises_;
    Candidates candidates_;
    std::vector<float> peaks_;  // of the row that was looked at last, see argmax
    std::vector<Token> recent_;
    Distribution p_;  // of the target, in rejection
};

}  // namespace specllama
