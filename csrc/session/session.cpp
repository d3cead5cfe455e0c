#include "specllama/session.h"

#include <utility>

#include "session/scheduler.h"
#include "session/session_parts.h"

namespace specllama {

Session::Session(const SessionOptions& options, std::shared_ptr<Drafter> drafter)
    : scheduler_(std::make_shared<Scheduler>(build_session(options, std::move(drafter)))) {}

Session::Session(const SessionOptions& options, std::shared_ptr<Verifier> verifier,
                 std::shared_ptr<Drafter> drafter)
    : scheduler_(std::make_shared<Scheduler>(
          build_session(options, std::move(verifier), std::move(drafter)))) {}

Session::~Session() = default;

std::vector<Token> Session::tokenize(std::string_view text, bool add_special, bool parse_special,
                                     TextRanges plain) const {
    return scheduler_->vocabulary()->tokenize(text, add_special, parse_special, plain);
}

std::string Session::detokenize(TokenSpan tokens, bool special) const {
    return scheduler_->vocabulary()->detokenize(tokens, special);
}

std::string Session::piece(Token token) const {
    const auto vocabulary = scheduler_->vocabulary();
    vocabulary->check({&token, 1});
    std::string bytes;
    vocabulary->append_piece(token, bytes, true);
    return bytes;
}

VocabularyTable Session::vocabulary_table() const { return scheduler_->vocabulary()->table(); }

MediaPrompt Session::media_prompt(std::span<const PromptPart> parts) const {
    return scheduler_->media_prompt(parts);
}

int Session::n_encoded() const { return scheduler_->n_encoded(); }

void Session::check(TokenSpan prompt, const GenerateOptions& options) const {
    scheduler_->check(prompt, {}, options);
}

void Session::check(const MediaPrompt& prompt, const GenerateOptions& options) const {
    scheduler_->check(prompt.tokens, prompt.chunks, options);
}

Stream Session::start(TokenSpan prompt, const GenerateOptions& options) {
    return Stream(scheduler_, scheduler_->start(prompt, {}, options));
}

Stream Session::start(const MediaPrompt& prompt, const GenerateOptions& options) {
    return Stream(scheduler_, scheduler_->start(prompt.tokens, prompt.chunks, options));
}

bool Session::step() { return scheduler_->step(); }

BeamResult Session::beam_search(TokenSpan prompt, const BeamOptions& options,
                                const BetweenRounds& between) {
    return scheduler_->beam_search(prompt, options, between);
}

SavedState Session::save(int slot) { return scheduler_->save(slot); }

void Session::load(const SavedState& state, int slot) { scheduler_->load(state, slot); }

int Session::erase(int slot) { return scheduler_->erase(slot); }

void Session::close() { scheduler_->close(); }

bool Session::closed() const { return scheduler_->closed(); }

bool Session::entered() const { return scheduler_->entered(); }

const SessionInfo& Session::info() const { return scheduler_->info(); }

int Session::n_free() const { return scheduler_->n_free(); }

std::vector<double> Session::decode_seconds() const { return scheduler_->decode_seconds(); }

}  // namespace specllama
