#include "constraint/thought_limit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "constraint/trigger.h"
#include "text/utf8.h"

namespace specllama {

namespace {

constexpr const char* kBlanks = " \t\r\n";

// The state of the thought at the beginning of a text, if there is one.
class Thought {
 public:
    Thought(const Vocab& vocab, const SamplingOptions& options)
        : vocab_(&vocab),
          opening_(options.reasoning_opening),
          closing_(vocab, {options.reasoning_closing}),
          closing_tokens_(vocab.tokenize(options.reasoning_closing, false, true)),
          n_left_(options.reasoning_budget),
          stage_(opening_.empty() ? Stage::thought : Stage::opening) {
        close_if_due();
    }

    // The token of the closing that must come next; kNoToken: any may come.
    Token due() const { return stage_ == Stage::closing ? closing_tokens_[n_closed_] : kNoToken; }

    // Adds a token to the text.
    void push(Token token) {
        if (stage_ == Stage::opening)
            open(token);
        else if (stage_ == Stage::thought)
            think(token);
        else if (stage_ == Stage::closing && ++n_closed_ == closing_tokens_.size())
            stage_ = Stage::answer;
        close_if_due();
    }

    // Removes the limit.
    void leave() { stage_ = Stage::answer; }

 private:
    enum class Stage { opening, thought, closing, answer };

    // A text is a thought only if it begins with the opening, or with blanks and the opening.
    void open(Token token) {
        vocab_->append_piece(token, text_, true);
        text_.erase(0, std::min(text_.find_first_not_of(kBlanks), text_.size()));
        if (text_.starts_with(opening_)) {
            // The token may end the opening and begin the closing.
            stage_ = closing_.push(token) ? Stage::answer : Stage::thought;
            text_.clear();
        } else if (!opening_.starts_with(text_)) {
            stage_ = Stage::answer;
        }
    }

    void think(Token token) {
        --n_left_;
        if (closing_.push(token)) {
            stage_ = Stage::answer;
            return;
        }
        vocab_->append_piece(token, text_);
        whole_.clear();
        text_.erase(0, append_utf8(text_, false, whole_));
    }

    // If the model has begun a closing, it may complete it within as many tokens as a closing has.
    void close_if_due() {
        const auto n_closing = static_cast<int>(closing_tokens_.size());
        const bool may_close = closing_.begun() && n_left_ > -n_closing;
        if (stage_ == Stage::thought && n_left_ <= 0 && text_.empty() && !may_close &&
            n_closing > 0)
            stage_ = Stage::closing;
    }

    const Vocab* vocab_;
    std::string opening_;
    Trigger closing_;
    std::vector<Token> closing_tokens_;
    int n_left_;                // tokens left for the thought; negative: it had more
    std::size_t n_closed_ = 0;  // tokens of the closing so far
    // Text that may become the opening; in a thought, the first bytes of an incomplete character.
    std::string text_;
    std::string whole_;  // kept to reuse its buffer
    Stage stage_;
};

class ThoughtLimit final : public Mask {
 public:
    ThoughtLimit(Thought thought, std::size_t n_vocab, std::unique_ptr<Mask> inner)
        : thought_(std::move(thought)), n_vocab_(n_vocab), inner_(std::move(inner)) {
        update();
    }

    Bits allowed() override {
        if (due_ == kNoToken) return inner_ ? inner_->allowed() : Bits();
        bits_.assign((n_vocab_ + 31) / 32, 0);
        bits_[due_ / 32] = std::uint32_t{1} << (due_ % 32);
        return bits_;
    }

    // If a logit forbids the closing, the thought has no limit.
    void apply(std::span<float> logits) override {
        if (due_ != kNoToken && std::isinf(logits[due_])) leave();
        Mask::apply(logits);
    }

    std::size_t n_allowed(TokenSpan draft) override {
        if (due_ == kNoToken) return inner_ ? inner_->n_allowed(draft) : draft.size();
        return !draft.empty() && draft[0] == due_ ? draft.size() : 0;
    }

    void accept(Token token) override {
        if (inner_) inner_->accept(token);
        thought_.push(token);
        update();
    }

    bool begun() const override { return due_ != kNoToken || (inner_ && inner_->begun()); }

    std::unique_ptr<Mask> clone() const override {
        std::unique_ptr<Mask> inner = inner_ ? inner_->clone() : nullptr;
        if (inner_ && !inner) return nullptr;
        return std::make_unique<ThoughtLimit>(thought_, n_vocab_, std::move(inner));
    }

 private:
    void leave() {
        thought_.leave();
        due_ = kNoToken;
    }

    // A text that follows a grammar is not a thought.
    void update() {
        if (inner_ && inner_->begun()) thought_.leave();
        due_ = thought_.due();
    }

    Thought thought_;
    std::size_t n_vocab_;
    std::unique_ptr<Mask> inner_;
    Token due_ = kNoToken;             // the only allowed token; kNoToken: inner_ decides
    std::vector<std::uint32_t> bits_;  // only due_
};

}  // namespace

std::unique_ptr<Mask> limit_thought(const Vocab& vocab, const SamplingOptions& options,
                                    std::unique_ptr<Mask> inner) {
    if (options.reasoning_budget < 0 || options.reasoning_closing.empty()) return inner;
    return std::make_unique<ThoughtLimit>(Thought(vocab, options), vocab.size(), std::move(inner));
}

}  // namespace specllama
