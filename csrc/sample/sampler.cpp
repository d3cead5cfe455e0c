#include "sample/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <utility>

#include "sample/argmax.h"
#include "specllama/error.h"

namespace specllama {

namespace {

constexpr std::size_t kMostOfBreakers = 64;  // of their number and of their length
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoTemperature = 1e-30;
constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// A shifted logit, kept finite: a token that a bias or penalty favours without bounds is likelier
// than all others, but can still be compared with them.
float finite(double logit) {
    constexpr double kMost = std::numeric_limits<float>::max();
    return static_cast<float>(std::clamp(logit, -kMost, kMost));
}

// Below 2^53, so that programs that store all numbers as doubles can return it exactly.
std::uint64_t fresh_seed() {
    std::random_device device;
    return (std::uint64_t{device()} << 32 | device()) >> 11;
}

void check_breakers(const std::vector<std::string>& breakers) {
    const auto is_good = [](const std::string& breaker) {
        return !breaker.empty() && breaker.size() <= kMostOfBreakers;
    };
    if (breakers.size() > kMostOfBreakers || !std::ranges::all_of(breakers, is_good))
        throw InvalidArgument(
            "dry_sequence_breakers must be at most 64 texts, each of 1 to 64 bytes.");
}

SamplingOptions checked(const SamplingOptions& options, std::size_t n_vocab) {
    check(options, n_vocab);
    SamplingOptions all = options;
    if (!all.seed) all.seed = fresh_seed();
    // Dividing by less would make a logit infinite, or make any difference of two logits outweigh
    // the noise.
    if (all.temperature < kNoTemperature) all.temperature = 0;
    return all;
}

}  // namespace

void check(const SamplingOptions& o, std::size_t n_vocab) {
    check_options(o);
    check_breakers(o.dry_sequence_breakers);
    if (o.lenience < 1 && o.acceptance != AcceptanceRule::rejection)
        throw InvalidArgument(
            "lenience requires the acceptance rule \"rejection\"; leave it out, or use that rule.");
    for (const auto& [token, bias] : o.logit_bias) {
        if (token < 0 || static_cast<std::size_t>(token) >= n_vocab)
            throw InvalidArgument("logit_bias names token " + std::to_string(token) +
                                  "; the model has " + std::to_string(n_vocab) + " tokens.");
        if (!(bias < std::numeric_limits<float>::infinity()))
            throw InvalidArgument("logit_bias must be finite or minus infinity, not " +
                                  std::to_string(bias) + ".");
    }
}

Sampler::Sampler(const SamplingOptions& options, std::size_t n_vocab, std::unique_ptr<Mask> mask,
                 AppendText append_text)
    : options_(checked(options, n_vocab)),
      n_vocab_(n_vocab),
      mask_(std::move(mask)),
      penalises_(options.repeat_last_n != 0 &&
                 (options.repeat_penalty != 1 || options.frequency_penalty != 0 ||
                  options.presence_penalty != 0)),
      dry_(options, std::move(append_text)),
      candidates_(options, n_vocab) {
    peaks_.reserve(n_parts(n_vocab));
    if (rejects()) p_.reserve(candidates_.most());
}

void Sampler::penalise(std::span<float> logits, TokenSpan context) {
    const auto n_last = options_.repeat_last_n < 0
                            ? context.size()
                            : std::min<std::size_t>(context.size(), options_.repeat_last_n);
    const TokenSpan last = context.last(n_last);
    // Copied one by one, so that the capacity doubles as the text grows.
    recent_.clear();
    std::ranges::copy(last, std::back_inserter(recent_));
    std::ranges::sort(recent_);
    for (std::size_t i = 0, n = 0; i < recent_.size(); i += n) {
        const Token token = recent_[i];
        n = 1;
        while (i + n < recent_.size() && recent_[i + n] == token) ++n;
        if (logits[token] == kForbidden) continue;
        double logit = logits[token];
        logit = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
        logit -= static_cast<double>(n) * options_.frequency_penalty + options_.presence_penalty;
        logits[token] = finite(logit);
    }
}

void Sampler::penalise_repetitions(std::span<float> logits, TokenSpan context) {
    dry_.penalise(context, [&](Token token, double penalty) {
        if (logits[token] != kForbidden) logits[token] = finite(logits[token] - penalty);
    });
}

void Sampler::shift(std::span<float> logits, TokenSpan context) {
    for (const auto& [token, bias] : options_.logit_bias)
        logits[token] = bias == kForbidden ? bias : finite(double{logits[token]} + bias);
    if (penalises_) penalise(logits, context);
    if (dry_.on()) penalise_repetitions(logits, context);
    const Noise noise(NoiseStream::exclude, seed(), static_cast<Position>(context.size()));
    excludes_ = uniform(noise.bits(0)) < options_.xtc_probability;
}

// The tokens that may be chosen, of the last row passed to likeliest().
std::span<const Candidate> Sampler::cut(std::span<const float> logits) {
    return candidates_.cut(logits, peaks_, excludes_);
}

Token Sampler::choose(std::span<float> logits, TokenSpan context, std::span<const Guess> guesses,
                      std::optional<TokenLogprobs>* logprobs) {
    const auto position = static_cast<Position>(context.size());
    if (logprobs == nullptr || options_.logprobs < 0) {
        shift(logits, context);
        return choose_shifted(logits, position, guesses);
    }
    // Choosing changes the logits, so the model's own are copied first.
    std::vector<float> own;
    if (!options_.processed_logprobs) own.assign(logits.begin(), logits.end());
    shift(logits, context);
    const Token token = choose_shifted(logits, position, guesses);
    if (token >= 0)
        *logprobs = options_.processed_logprobs ? processed(logits, token)
                                                : log_softmax(own, token, options_.logprobs);
    return token;
}

TokenLogprobs Sampler::processed(std::span<float> logits, Token token) {
    if (options_.temperature == 0) {  // nothing else can come
        TokenLogprobs only{token, 0, {}};
        if (options_.logprobs > 0) only.top.emplace_back(token, 0.0F);
        return only;
    }
    likeliest(logits);
    return log_softmax(cut(logits), options_.temperature, token, options_.logprobs);
}

Token Sampler::choose_shifted(std::span<float> logits, Position position,
                              std::span<const Guess> guesses) {
    const Noise noise(NoiseStream::choose, seed(), position);
    if (options_.acceptance == AcceptanceRule::rejection) {
        if (mask_) mask_->apply(logits);
        return guesses.empty() ? pick(logits, noise) : judge_guesses(logits, position, guesses);
    }
    // The grammar checks one token far faster than a whole vocabulary.
    const Token token = pick(logits, noise);
    if (token < 0 || !mask_ || mask_->allows(token)) return token;
    mask_->apply(logits);
    return pick(logits, noise);
}

Token Sampler::judge_guesses(std::span<const float> logits, Position position,
                             std::span<const Guess> guesses) {
    const Token most_likely =
        options_.temperature == 0 ? pick_likeliest(logits) : likeliest(logits);
    if (most_likely < 0) return most_likely;
    if (options_.temperature == 0) {
        if (options_.lenience == 1) return most_likely;
        const double least = logits[most_likely] + std::log(options_.lenience);
        const bool whole = keeps_likeliest();
        const auto left = whole ? std::span<const Candidate>() : cut(logits);
        const auto good = std::ranges::find_if(guesses, [&](const Guess& guess) {
            return logits[guess.token] >= least &&
                   (whole || std::ranges::count(left, guess.token, &Candidate::token) > 0);
        });
        return good == guesses.end() ? most_likely : good->token;
    }
    softmax(cut(logits), options_.temperature, p_);
    return judge(p_, guesses, options_.lenience, Noise(NoiseStream::accept, seed(), position),
                 uniform(Noise(NoiseStream::residual, seed(), position).bits(0)));
}

Token Sampler::draft(std::span<float> logits, TokenSpan context, Distribution& drawn_from,
                     std::span<Token> alternatives) {
    const auto position = static_cast<Position>(context.size());
    shift(logits, context);
    const Noise noise(draft_stream(), seed(), position);
    const Token token = pick(logits, noise, alternatives);
    if (token >= 0 && rejects()) {
        softmax(cut(logits), options_.temperature, drawn_from);
        // Tokens with probability 0 there (cut, or too unlikely) are not guesses.
        std::ranges::replace_if(
            alternatives, [&](Token other) { return probability(drawn_from, other) == 0; },
            kNoToken);
    }
    return token;
}

Token Sampler::draft(const Distribution& distribution, Position position) const {
    const Noise noise(draft_stream(), seed(), position);
    double best = -kInfinity;
    Token drawn = kNoToken;
    for (const Outcome& outcome : distribution) {
        double score = std::log(outcome.probability);
        if (options_.temperature > 0) score += gumbel(noise.bits(outcome.token));
        if (score > best) {
            best = score;
            drawn = outcome.token;
        }
    }
    return drawn;
}

// Also stores the peaks of the row's parts in peaks_.
Token Sampler::likeliest(std::span<const float> logits) {
    peaks_.resize(n_parts(logits.size()));
    const Token token = argmax(logits, peaks_);
    return token >= 0 && logits[token] == -kInfinity ? kNothingLeft : token;
}

// Calls consider(score, token) for the remaining tokens of the last row passed to likeliest(),
// without most of those that score at most `best`; consider may change `best`.
//
// A Gumbel number is at most -log(1 - u), and 1 - u is at least 2^-(leading ones + 1). So
// logarithms are needed only for the few tokens with enough leading ones to reach `best`, and the
// peak of a part gives the minimum number of ones for its tokens.
template <typename Consider>
void Sampler::each_left(std::span<const float> logits, Noise noise, const double& best,
                        Consider consider) {
    const auto score = [&](float logit, std::uint64_t bits, Token token) {
        const double scaled = logit / options_.temperature;
        if (scaled + (std::countl_one(bits) + 1) * std::numbers::ln2 <= best) return;
        consider(scaled + gumbel(bits), token);
    };
    if (candidates_.cuts() || excludes_) {
        for (const Candidate& candidate : cut(logits))
            score(candidate.logit, noise.bits(candidate.token), candidate.token);
        return;
    }
    for (std::size_t i = 0; i < peaks_.size(); ++i) {
        constexpr double kMargin = 1e-6;  // far above rounding errors
        const double n_ones =
            (best - peaks_[i] / options_.temperature) / std::numbers::ln2 - kMargin;
        if (!(n_ones < 65)) continue;  // also true if all of the part is forbidden
        const auto n_least = static_cast<int>(std::max(n_ones, 0.0));
        const std::uint64_t least = n_least == 0 ? 0 : ~std::uint64_t{0} << (64 - n_least);
        auto token = static_cast<Token>(i * kPartLogits);
        for (const float logit : part(logits, i)) {
            const std::uint64_t bits = noise.bits(token);
            if (bits >= least) score(logit, bits, token);
            ++token;
        }
    }
}

Token Sampler::pick(std::span<const float> logits, Noise noise, std::span<Token> alternatives) {
    std::ranges::fill(alternatives, kNoToken);
    const bool greedy = options_.temperature == 0;
    if (greedy && alternatives.empty()) return pick_likeliest(logits);
    const Token most_likely = likeliest(logits);
    if (most_likely < 0) return most_likely;

    struct Scored {
        double score = -kInfinity;
        Token token = kNoToken;
    };
    const auto better = [](const Scored& a, const Scored& b) {
        return a.score != b.score ? a.score > b.score : a.token < b.token;
    };
    std::array<Scored, kMaxTreeWidth> best;
    const std::size_t n = alternatives.size() + 1;
    const double& least = best[n - 1].score;
    const auto consider = [&](double score, Token token) {
        const Scored one{score, token};
        if (!better(one, best[n - 1])) return;
        std::size_t at = n - 1;
        for (; at > 0 && better(one, best[at - 1]); --at) best[at] = best[at - 1];
        best[at] = one;
    };
    if (!greedy) {
        each_left(logits, noise, least, consider);
    } else if (keeps_likeliest()) {
        // If the likeliest token were forbidden, the next one would be the likeliest, regardless of
        // the cuts.
        for (std::size_t i = 0; i < peaks_.size(); ++i) {
            if (peaks_[i] <= least) continue;
            auto token = static_cast<Token>(i * kPartLogits);
            for (const float logit : part(logits, i)) consider(logit, token++);
        }
    } else {
        for (const Candidate& one : cut(logits)) consider(one.logit, one.token);
    }
    for (std::size_t i = 0; i < alternatives.size(); ++i) alternatives[i] = best[i + 1].token;
    return best[0].token == kNoToken ? most_likely : best[0].token;
}

// The token that temperature 0 chooses.
Token Sampler::pick_likeliest(std::span<const float> logits) {
    const Token most_likely = likeliest(logits);
    if (most_likely < 0 || keeps_likeliest()) return most_likely;
    return std::ranges::min(cut(logits), likelier).token;
}

}  // namespace specllama
