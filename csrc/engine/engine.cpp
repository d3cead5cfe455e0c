#include "engine/engine.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "specllama/error.h"
#include "system/clock.h"

namespace specllama {

Engine::Engine(std::unique_ptr<Target> target, std::unique_ptr<Speculator> speculator)
    : target_(std::move(target)), speculator_(std::move(speculator)) {}

DraftLimits Engine::limits() const {
    DraftLimits limits = target_->limits(speculator_->limits());
    if (!speculator_->speculates()) limits.depth = 0;
    return limits;
}

void Engine::begin(Sequence& sequence, TokenSpan reference) {
    target_->begin(sequence);
    speculator_->begin(sequence, reference);
}

void Engine::end(Sequence& sequence) {
    target_->end(sequence);
    speculator_->end(sequence);
}

void Engine::step(std::span<Sequence* const> sequences) {
    Round& round = round_;
    try {
        target_->prefill(sequences, round.sequences, round.decodes);
        observe_decodes(round);
        if (round.sequences.empty()) return;
        propose(round);
        while (verify(round)) {
            accept(round);
            rewind(round);
            commit(round);
        }
    } catch (...) {
        target_->restore();
        throw;
    }
}

// The round that ends a prompt drafts nothing: a draft would delay the first token, and little is
// known about an answer that has not begun.
void Engine::propose(Round& round) {
    round.limits.clear();
    for (const Sequence* sequence : round.sequences) {
        DraftLimits& limits = round.limits.emplace_back();
        if (!speculator_->speculates() || sequence->in_prompt()) continue;
        limits = target_->limits(*sequence, speculator_->limits());
        limits.depth = std::min(limits.depth, sequence->spec_length());
        // A round of g drafted tokens generates up to g + 1.
        limits.depth = std::clamp(sequence->n_tokens_left() - 1, 0, limits.depth);
    }
    speculator_->propose(round.sequences, round.limits, target_->overhead());
    const std::size_t n = round.sequences.size();
    if (round.results.size() < n) round.results.resize(n);
    for (std::size_t i = 0; i < n; ++i)
        round.results[i].begin(*round.sequences[i], speculator_->draft(i));
    round.first = round.last = 0;
}

// Verifies the next part of the drafts; false: there is none.
bool Engine::verify(Round& round) {
    round.first = round.last;
    const auto rest = std::span(round.results).first(round.sequences.size()).subspan(round.first);
    if (rest.empty()) return false;
    round.last += target_->verify(rest, speculator_->n_padding(), round.decodes);
    observe_decodes(round);
    return true;
}

// Notifies planner and drafters of the results.
void Engine::accept(Round& round) {
    for_each_verified(round, [&](std::size_t i) {
        const Verification& one = round.results[i];
        Sequence& sequence = *one.sequence;
        if (sequence.in_prompt()) sequence.stats.prefill_generated_tokens = sequence.n_generated();
        speculator_->observe(i, one);
    });
}

// At least one token stays undecoded, because the target has not chosen its successor yet. Accepted
// tokens of a branch are cut, too, and decoded again in the next round: their cells in the memory
// are not those that they would have without a draft, which may change a bit.
void Engine::rewind(Round& round) {
    for_each_verified(round, [&](std::size_t i) {
        const Verification& one = round.results[i];
        Sequence& sequence = *one.sequence;
        Seconds& seconds = sequence.stats.seconds;
        const Timer timer(sequence.in_prompt() ? seconds.prefill : seconds.verify);
        const int n_judged = sequence.n_tokens() - (one.last < 0 ? 1 : 0);
        target_->rewind(sequence, std::min(one.n_before + n_on_main_path(one.path), n_judged));
    });
}

// Ends the texts that cannot continue, and continues the others with forced tokens.
void Engine::commit(Round& round) {
    for_each_verified(round, [&](std::size_t i) {
        const Verification& one = round.results[i];
        Sequence& sequence = *one.sequence;
        sequence.end_prompt();
        if (one.last == kNoToken) {
            sequence.spoiled = true;
            sequence.fail(std::make_exception_ptr(DecodeError(
                "The model gave logits that are not numbers (NaN or infinite); the file is "
                "damaged, or its numbers overflow on this device.")));
        } else if (one.last == kNothingLeft && sequence.has_grammar()) {
            // A text is complete if its grammar allows no continuation.
            sequence.finish(FinishReason::stop);
        } else if (one.last == kNothingLeft && !sequence.done()) {
            sequence.fail(std::make_exception_ptr(DecodeError(
                "The model left nothing to choose from: logit_bias, or the model itself, forbids "
                "every token.")));
        }
        commit_forced(sequence);
        if (sequence.given() != nullptr && !sequence.done()) sequence.finish(FinishReason::none);
    });
}

// Forced tokens need no logits: they are decoded with the next round, before its draft.
void Engine::commit_forced(Sequence& sequence) {
    while (!sequence.done()) {
        const Token token = speculator_->forced_token(sequence);
        if (token == kNoToken) return;
        const Timer timer(sequence.stats.seconds.text);
        if (sequence.traces()) sequence.trace.back().forced.push_back(token);
        sequence.commit(token, false);
        // A stop string may remove tokens that the memory holds.
        if (sequence.n_tokens() < sequence.n_cached())
            target_->rewind(sequence, sequence.n_tokens());
        ++sequence.stats.forced;
        ++sequence.stats.chosen_tokens;
    }
}

void Engine::observe_decodes(Round& round) {
    for (const Decode& decode : round.decodes) speculator_->observe_decode(decode);
    round.decodes.clear();
}

template <typename Function>
void Engine::for_each_verified(Round& round, Function function) {
    for (std::size_t i = round.first; i < round.last; ++i) {
        Verification& one = round.results[i];
        if (!one.verified) continue;
        try {
            function(i);
        } catch (const Error&) {
            one.verified = false;
            one.sequence->fail();
            target_->rewind(*one.sequence, one.sequence->n_cached());
        }
    }
}

}  // namespace specllama
