#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sample/candidates.h"
#include "sample/distribution.h"
#include "sample/dry.h"
#include "sample/mask.h"
#include "sample/noise.h"
#include "sample/rejection.h"
#include "specllama/generate_options.h"
#include "specllama/types.h"

namespace specllama {

// Every token is forbidden, by the mask or by logit_bias.
inline constexpr Token kNothingLeft = -2;

// Throws InvalidArgument if an option is out of range for a model of n_vocab tokens. Does not check
// the grammar.
void check(const SamplingOptions& options, std::size_t n_vocab);

// The choice rule: argmax over the kept tokens of logit / T + gumbel(seed, position, token), which
// is a draw from the softmax at temperature T; T = 0 drops the noise.
//
// The noise is a pure function, so the target's token at a position is the same whether its logits
// were computed alone or inside a draft: the output does not depend on the drafter. (Coupling by
// common noise: Daliri, Musco, Suresh, "Coupling without communication and drafter-invariant
// speculative decoding", 2024, section 3.) With AcceptanceRule::rejection this holds only for
// tokens without a draft; draft tokens are judged by speculative sampling (rejection.h), with
// separate noise.
//
// Choosing a token does not allocate, except for log-probabilities, grammars, distributions written
// for the caller and, with penalties or DRY, longer contexts. The same calls give the same tokens;
// only the mask has a state.
class Sampler {
 public:
    // Allocates for rows of n_vocab logits. append_text: gives DRY the texts of tokens. Throws like
    // `check`.
    Sampler(const SamplingOptions& options, std::size_t n_vocab,
            std::unique_ptr<Mask> mask = nullptr, AppendText append_text = nullptr);

    // As given, but with the seed that is used, and with temperature 0 instead of any below 1e-30.
    const SamplingOptions& options() const { return options_; }
    std::uint64_t seed() const { return *options_.seed; }
    std::size_t n_vocab() const { return n_vocab_; }
    const AppendText& append_text() const { return dry_.append_text(); }
    // Whether draft tokens must be drawn from a distribution, which is then passed to `choose`.
    bool rejects() const {
        return options_.acceptance == AcceptanceRule::rejection && options_.temperature > 0;
    }

    // Returns the target's token after `context`, all tokens of the sequence so far. guesses: the
    // draft's candidates for this token, all different; the returned one is thereby accepted.
    // `logits` [n_vocab] are changed. Returns kNoToken if they hold a NaN or plus infinity,
    // kNothingLeft if every token is forbidden. If the options request logprobs, those of the token
    // are written to `logprobs`.
    Token choose(std::span<float> logits, TokenSpan context, std::span<const Guess> guesses = {},
                 std::optional<TokenLogprobs>* logprobs = nullptr);

    // Advances the mask by a token that `choose` returned and that does not end the sequence.
    void accept(Token token) {
        if (mask_) mask_->accept(token);
    }

    // Whether the mask, if there is one, allows this token next.
    bool allows(Token token) const { return !mask_ || mask_->allows(token); }

    // Null: none, any token may come.
    Mask* mask() const { return mask_.get(); }

    // Returns a drafter's token after `context`, from the logits of the drafter's own model
    // (changed), by the same rule. It is coupled with `choose` by the same noise, except with
    // `rejects()`: then it uses a separate noise stream, and the distribution it was drawn from is
    // written to `drawn_from`. kNoToken and kNothingLeft as above. The mask is not used.
    // alternatives: at most kMaxTreeWidth - 1 places, filled with the tokens that would be chosen
    // if the returned one and the earlier ones in `alternatives` were forbidden; kNoToken if none
    // is left. So guesses are drawn without replacement. (Kool, van Hoof, Welling, "Stochastic
    // beams and where to find them", 2019, section 2.3.)
    Token draft(std::span<float> logits, TokenSpan context, Distribution& drawn_from,
                std::span<Token> alternatives = {});

    // The same for a drafter that has probabilities; at temperature 0 the likeliest token.
    Token draft(const Distribution& distribution, Position position) const;

 private:
    void shift(std::span<float> logits, TokenSpan context);
    void penalise(std::span<float> logits, TokenSpan context);
    void penalise_repetitions(std::span<float> logits, TokenSpan context);
    std::span<const Candidate> cut(std::span<const float> logits);
    // Also fills `alternatives` with the tokens of the next best scores, in order.
    Token pick(std::span<const float> logits, Noise noise, std::span<Token> alternatives = {});
    bool keeps_likeliest() const { return !excludes_ && candidates_.keep_likeliest(); }
    Token pick_likeliest(std::span<const float> logits);
    Token choose_shifted(std::span<float> logits, Position position,
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
    Dry dry_;
    Candidates candidates_;
    bool excludes_ = false;     // whether XTC removes top choices of the current row
    std::vector<float> peaks_;  // of the current row, see argmax
    std::vector<Token> recent_;
    Distribution p_;  // the target's probabilities, in rejection sampling
};

}  // namespace specllama
