#include "llama/grammar.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "llama-cpp.h"
#include "llama/backend.h"
#include "llama/trigger.h"
#include "specllama/error.h"

namespace specllama {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 10;
constexpr int kMaxNesting = 64;
constexpr long kMaxRules = 4096;
constexpr long kMaxRepeated = 1L << 18;
// llama.cpp follows every way to read a text at once. Where two ways of a rule that calls itself
// begin alike, they double with each character: what took this long would soon take for ever.
constexpr std::chrono::milliseconds kLongestStep{1000};

// llama.cpp's parser and its search for left recursion call themselves for every group and rule,
// and a repetition becomes as many rules, each with a copy of what is repeated: what is too much
// for them would end the process, or take all memory.
class Scan {
 public:
    explicit Scan(const std::string& text) : text_(text) {
        for (at_ = 0; at_ < text_.size(); ++at_) {
            const std::size_t start = at_;
            switch (text_[at_]) {
                case '"':
                    skip_to('"');
                    last_ = static_cast<long>(at_ - start);
                    continue;
                case '[':
                    skip_to(']');
                    last_ = static_cast<long>(at_ - start);
                    continue;
                case '#':
                    at_ = std::min(text_.find('\n', at_), text_.size() - 1);
                    continue;
                case '(':
                    deepest_ = std::max(deepest_, ++depth_);
                    break;
                case ')':
                    --depth_;
                    break;
                case '{':
                    count_repetitions();
                    continue;
                case ' ':
                case '\t':
                case '\r':
                case '\n':
                    continue;
                case '=':
                case '?':
                case '*':
                case '+':
                    ++rules_;
                    break;
                default:
                    break;
            }
            last_ = 1;  // a rule, by its name
        }
    }

    int deepest() const { return deepest_; }
    long rules() const { return rules_; }
    // Characters in all the copies of what is repeated.
    long repeated() const { return repeated_; }

 private:
    void skip_to(char end) {
        for (++at_; at_ < text_.size() && text_[at_] != end; ++at_)
            if (text_[at_] == '\\') ++at_;
    }

    // {m}, {m,}, {m,n}: the larger number counts.
    void count_repetitions() {
        long most = 0;
        long number = 0;
        for (++at_; at_ < text_.size() && text_[at_] != '}'; ++at_) {
            const char c = text_[at_];
            number = c >= '0' && c <= '9' ? std::min(number * 10 + (c - '0'), kMaxRules + 1) : 0;
            most = std::max(most, number);
        }
        rules_ = std::min(rules_ + most, 2 * kMaxRules);
        repeated_ = std::min(repeated_ + most * last_, 2 * kMaxRepeated);
    }

    const std::string& text_;
    std::size_t at_ = 0;
    int depth_ = 0;
    int deepest_ = 0;
    long rules_ = 0;
    long last_ = 0;  // characters of what a repetition would repeat
    long repeated_ = 0;
};

// Keeps what is written to stderr while it lives: llama.cpp prints there why a grammar cannot be
// read, and the whole grammar behind it. The stream is the whole process's: one at a time.
class StderrCapture {
 public:
    StderrCapture() : lock_(mutex()), file_(std::tmpfile()) {
        std::fflush(stderr);
        if (file_ == nullptr) return;
        stderr_ = dup(STDERR_FILENO);
        if (stderr_ >= 0) dup2(fileno(file_), STDERR_FILENO);
    }
    ~StderrCapture() {
        restore();
        if (file_ != nullptr) std::fclose(file_);
    }
    StderrCapture(const StderrCapture&) = delete;
    StderrCapture& operator=(const StderrCapture&) = delete;

    // The first line, the stream being restored.
    std::string first_line() {
        restore();
        if (file_ == nullptr) return "";
        if (std::fseek(file_, 0, SEEK_SET) != 0) return "";
        char line[512] = "";
        if (std::fgets(line, sizeof(line), file_) == nullptr) return "";
        const std::string text = line;
        return text.substr(0, text.find('\n'));
    }

 private:
    static std::mutex& mutex() {
        static std::mutex one;
        return one;
    }

    void restore() {
        if (stderr_ < 0) return;
        std::fflush(stderr);
        dup2(stderr_, STDERR_FILENO);
        close(stderr_);
        stderr_ = -1;
    }

    const std::lock_guard<std::mutex> lock_;
    std::FILE* file_;
    int stderr_ = -1;
};

// "parse: error parsing grammar: expecting name at ::= x": what and where.
std::string reason(const std::string& printed, const std::string& logged) {
    constexpr std::string_view kMark = "error parsing grammar: ";
    constexpr std::size_t kLongest = 120;
    const auto at = printed.find(kMark);
    std::string text = at == std::string::npos ? logged : printed.substr(at + kMark.size());
    if (text == "failed to parse grammar") return "it has no rules";
    if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
    while (text.ends_with(' ') || text.ends_with('.')) text.pop_back();
    return text;
}

class Grammar final : public Mask {
 public:
    // awaited: what it begins at; none: it holds from the start.
    Grammar(llama_sampler_ptr sampler, std::optional<Trigger> awaited)
        : sampler_(std::move(sampler)), awaited_(std::move(awaited)) {}

    void apply(std::span<float> logits) override {
        if (awaited_) return;
        candidates_.resize(logits.size());
        for (std::size_t i = 0; i < logits.size(); ++i)
            candidates_[i] = {static_cast<Token>(i), logits[i], 0};
        ask(candidates_.data(), logits.size());
        for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = candidates_[i].logit;
    }

    bool allows(Token token) override {
        if (awaited_) return true;
        llama_token_data one{token, 0, 0};
        ask(&one, 1);
        return one.logit == 0;
    }

    std::size_t keep_allowed(std::span<Token> tokens) override {
        if (awaited_) return tokens.size();
        candidates_.resize(std::max(candidates_.size(), tokens.size()));
        for (std::size_t i = 0; i < tokens.size(); ++i) candidates_[i] = {tokens[i], 0, 0};
        ask(candidates_.data(), tokens.size());
        std::size_t n = 0;
        for (std::size_t i = 0; i < tokens.size(); ++i)
            if (candidates_[i].logit == 0) tokens[n++] = candidates_[i].id;
        return n;
    }

    void accept(Token token) override {
        if (!awaited_)
            timed([&] { llama_sampler_accept(sampler_.get(), token); });
        else if (awaited_->push(token))
            begin();
    }

    std::unique_ptr<Mask> clone() const override {
        return std::make_unique<Grammar>(llama_sampler_ptr(llama_sampler_clone(sampler_.get())),
                                         awaited_);
    }

 private:
    // The sampler looks for the trigger itself, in the tokens that hold it, and reads from there.
    void begin() {
        try {
            for (const Token token : awaited_->tokens())
                timed([&] { llama_sampler_accept(sampler_.get(), token); });
            awaited_.reset();
        } catch (const Error&) {
            throw;
        } catch (const std::runtime_error&) {  // the rest of the token does not fit
            llama_sampler_reset(sampler_.get());
            awaited_->restart();
        }
    }

    void ask(llama_token_data* candidates, std::size_t n) {
        llama_token_data_array array{candidates, n, -1, false};
        timed([&] { llama_sampler_apply(sampler_.get(), &array); });
    }

    template <typename Work>
    void timed(Work work) {
        using Clock = std::chrono::steady_clock;
        const auto started = Clock::now();
        if (!too_slow_) work();
        too_slow_ |= Clock::now() - started > kLongestStep;
        if (too_slow_)
            throw DecodeError(
                "The grammar is too ambiguous to be followed: there are too many ways to read the "
                "text so far; rewrite rules that call themselves so that their alternatives begin "
                "with different characters.");
    }

    llama_sampler_ptr sampler_;
    std::vector<llama_token_data> candidates_;
    std::optional<Trigger> awaited_;  // none: the grammar holds
    bool too_slow_ = false;
};

llama_sampler* init_sampler(const Vocab& vocab, const std::string& gbnf,
                            const std::optional<Trigger>& awaited) {
    if (!awaited) return llama_sampler_init_grammar(vocab.get(), gbnf.c_str(), "root");
    const std::string pattern = awaited->pattern();
    const char* patterns[] = {pattern.c_str()};
    return llama_sampler_init_grammar_lazy_patterns(vocab.get(), gbnf.c_str(), "root", patterns, 1,
                                                    nullptr, 0);
}

}  // namespace

std::unique_ptr<Mask> make_grammar(const Vocab& vocab, const std::string& gbnf,
                                   const std::vector<std::string>& triggers) {
    if (gbnf.size() > kMaxBytes)
        throw InvalidArgument("The grammar has " + std::to_string(gbnf.size()) +
                              " bytes; at most 65536 can be read.");
    if (gbnf.find('\0') != std::string::npos)
        throw InvalidArgument("The grammar holds a NUL character.");
    const Scan scan(gbnf);
    if (scan.deepest() > kMaxNesting)
        throw InvalidArgument("The grammar nests " + std::to_string(scan.deepest()) +
                              " groups; at most 64 can be read: name some of them as rules.");
    if (scan.rules() > kMaxRules)
        throw InvalidArgument("The grammar has more than 4096 rules and repetitions.");
    if (scan.repeated() > kMaxRepeated)
        throw InvalidArgument(
            "The grammar's repetitions have more than 262144 characters; make what is repeated a "
            "rule of its own.");
    std::optional<Trigger> awaited;
    if (!triggers.empty()) awaited.emplace(vocab, triggers);
    const ErrorLog errors;
    StderrCapture capture;
    llama_sampler_ptr sampler(init_sampler(vocab, gbnf, awaited));
    const std::string printed = capture.first_line();
    if (!sampler)
        throw InvalidArgument("The grammar cannot be read: " + reason(printed, errors.first()) +
                              ".");
    return std::make_unique<Grammar>(std::move(sampler), std::move(awaited));
}

}  // namespace specllama
