#include "specllama/session.h"

#include <utility>

#include "engine/utf8.h"
#include "session_state.h"
#include "specllama/error.h"

namespace specllama {

Session::Session(const SessionOptions& options, std::shared_ptr<Drafter> drafter)
    : state_(std::make_shared<SessionState>(options, std::move(drafter))) {}

Session::~Session() = default;

std::vector<Token> Session::tokenize(std::string_view text, bool add_special,
                                     bool parse_special) const {
    return state_->model()->vocab().tokenize(text, add_special, parse_special);
}

std::string Session::detokenize(TokenSpan tokens, bool special) const {
    const std::shared_ptr<const Model> model = state_->model();
    const Vocab& vocab = model->vocab();
    for (const Token token : tokens)
        if (!vocab.contains(token))
            throw InvalidArgument("Token " + std::to_string(token) +
                                  " is out of range; the model has " +
                                  std::to_string(vocab.size()) + " tokens.");
    std::string text;
    append_utf8(vocab.detokenize(tokens, special), true, text);
    return text;
}

void Session::check(TokenSpan prompt, const GenerateOptions& options) const {
    state_->check(prompt, options);
}

Stream Session::start(TokenSpan prompt, const GenerateOptions& options) {
    return Stream(state_, state_->start(prompt, options));
}

bool Session::step() { return state_->step(); }

SavedState Session::save() { return state_->save(); }

void Session::load(const SavedState& state) { state_->load(state); }

void Session::close() { state_->close(); }

bool Session::closed() const { return state_->closed(); }

bool Session::entered() const { return state_->entered(); }

int Session::n_ctx() const { return state_->n_ctx(); }

int Session::n_seq() const { return state_->n_seq(); }

int Session::n_free() const { return state_->n_free(); }

int Session::n_vocab() const { return state_->model()->vocab().size(); }

Token Session::bos() const { return state_->model()->vocab().bos(); }

Token Session::eos() const { return state_->model()->vocab().eos(); }

std::optional<std::string> Session::chat_template() const {
    return state_->model()->chat_template();
}

int Session::n_threads() const { return state_->n_threads(); }

std::string Session::model_description() const { return state_->model()->description(); }

std::string Session::cpu_kernels() const { return state_->model()->kernels(); }

}  // namespace specllama
