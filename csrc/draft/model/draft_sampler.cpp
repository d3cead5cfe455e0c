#include "draft/model/draft_sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "sample/probability.h"
#include "specllama/error.h"

namespace specllama {

DraftSampler::DraftSampler(const DraftModelOptions& options, std::size_t n_vocab)
    : options_(options), n_vocab_(n_vocab) {
    check_options(options);
}

Sampler DraftSampler::sampler_like(const Sampler& target) const {
    SamplingOptions options = target.options();
    options.temperature = options_.temperature.value_or(options.temperature);
    options.top_k = options_.top_k.value_or(options.top_k);
    options.top_p = options_.top_p.value_or(options.top_p);
    options.min_p = options_.min_p.value_or(options.min_p);
    options.logprobs = -1;
    options.processed_logprobs = false;
    options.grammar.clear();
    options.grammar_triggers.clear();
    return {options, n_vocab_, nullptr, target.append_text()};
}

void DraftSampler::begin(SequenceId sequence) {
    Request& request = requests_[sequence];
    request.sampler.reset();
    request.drawn_from.resize(kMaxSpecLength);
}

bool DraftSampler::extend(DraftRequest& proposal, std::span<float> logits,
                          std::vector<Token>& tokens, std::optional<float> confidence) {
    if (!draw(proposal, logits, tokens, confidence)) return false;
    tokens.push_back(proposal.draft.tokens.back());
    return true;
}

// Adds the next token and its alternatives to the draft. Returns whether one was added.
bool DraftSampler::draw(DraftRequest& proposal, std::span<float> logits, TokenSpan tokens,
                        std::optional<float> known_confidence) {
    Request& request = requests_.at(proposal.sequence);
    if (!request.sampler) request.sampler.emplace(sampler_like(*proposal.sampler));
    Sampler& sampler = *request.sampler;
    const int depth = proposal.draft.size();
    Distribution& drawn_from = request.drawn_from[depth];
    std::array<Token, kMaxTreeWidth - 1> others;
    const auto alternatives = std::span(others).first(
        std::clamp(proposal.max_alternatives, 0, static_cast<int>(others.size())));
    const Token token = sampler.draft(logits, tokens, drawn_from, alternatives);
    if (token == kNothingLeft) return false;
    if (token == kNoToken) {
        proposal.error = "The draft model's logits contain a NaN.";
        return false;
    }
    // The end of a drawn draft may depend on the distribution, but not on the token drawn from it.
    const bool draws = sampler.rejects();
    const auto confidence = known_confidence ? *known_confidence
                            : draws          ? static_cast<float>(highest(drawn_from))
                                             : probability(logits, token);
    if (confidence < options_.p_min) return false;
    const Distribution* const from = draws ? &drawn_from : nullptr;
    proposal.draft.push(token, {.source = Source::model, .confidence = confidence}, from);
    // The confidence of an alternative: its probability if all guesses before it are wrong.
    float left = 1 - confidence;
    for (const Token other : alternatives) {
        if (other == kNoToken) break;
        float believed = 0;
        if (!draws) {
            const float own = confidence * std::exp(logits[other] - logits[token]);
            believed = own < left ? own / left : 1;
            left -= own;
        }
        proposal.draft.push_branch(depth, other, {.source = Source::model, .confidence = believed},
                                   from);
    }
    return true;
}

}  // namespace specllama
