#include "llama/grammar.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/beginnings.h"
#include "grammar/gbnf.h"
#include "llama-cpp.h"
#include "llama/backend.h"
#include "llama/trigger.h"
#include "specllama/error.h"
#include "text/utf8.h"

namespace specllama {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 10;
// llama.cpp follows all ways to read a text at once. If two ways of a rule that calls itself begin
// alike, their number doubles with each character: a step that took this long would soon take
// forever.
constexpr std::chrono::milliseconds kLongestStep{1000};

// Candidates are asked for in groups by the length of their text; [i]: most characters in group i
// (all longer texts form a last group). A grammar is too ambiguous if, in a group above kCompared
// characters, a character costs kSteep times what it costs in the group of kCompared, and the whole
// group takes more than a moment: still longer texts would take forever.
constexpr std::array<int, 15> kLengths{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24};
constexpr int kCompared = 5;
constexpr double kSteep = 4;
constexpr double kMoment = 0.005;  // seconds
// A single candidate with more characters than this is read instead (see can_read).
constexpr int kLongAlone = 8;

// While it lives, captures what is written to stderr: llama.cpp prints there why a grammar cannot
// be read, and then the whole grammar. The process has one stderr, so a lock admits one at a time,
// and what other threads write meanwhile is lost.
class StderrCapture {
 public:
    StderrCapture() : lock_(mutex()), file_(std::tmpfile()) {
        if (file_ == nullptr) file_ = std::fopen("/dev/null", "r+");  // no temporary folder
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

    // Restores stderr and returns the first line that was captured.
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

// Returns what is wrong and where: the end of "parse: error parsing grammar: expecting name at ::=
// x", or, if nothing like that was printed, what was logged.
std::string reason(const std::string& printed, const std::string& logged) {
    constexpr std::string_view kMark = "error parsing grammar: ";
    constexpr std::size_t kLongest = 160;
    const auto at = printed.find(kMark);
    std::string text = at == std::string::npos ? logged : printed.substr(at + kMark.size());
    if (text == "failed to parse grammar") return "it has no rules";
    while (text.ends_with(' ') || text.ends_with('.')) text.pop_back();
    if (text.ends_with(" at")) text += " its end";
    if (text.size() <= kLongest) return text;
    text.resize(kLongest);
    text.resize(std::min(find_invalid_utf8(text), kLongest));  // not in the middle of a character
    return text + " (...)";
}

class Grammar final : public Mask {
 public:
    // awaited: the trigger from which the grammar holds; none: it holds from the start.
    Grammar(const Vocab& vocab, llama_sampler_ptr sampler, std::optional<Trigger> awaited)
        : vocab_(vocab), sampler_(std::move(sampler)), awaited_(std::move(awaited)) {}

    void apply(std::span<float> logits) override {
        if (awaited_) return;
        candidates_.resize(logits.size());
        for (std::size_t i = 0; i < logits.size(); ++i)
            candidates_[i] = {static_cast<Token>(i), logits[i], 0};
        ask();
        for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = candidates_[i].logit;
    }

    bool allows(Token token) override {
        if (awaited_) return true;
        if (between_ && vocab_.length(token) > kLongAlone && is_whole_text(token))
            return can_read(token);
        llama_token_data one{token, 0, 0};
        ask({&one, 1});
        return one.logit == 0;
    }

    std::size_t keep_allowed(std::span<Token> tokens) override {
        if (awaited_) return tokens.size();
        candidates_.clear();
        for (const Token token : tokens) candidates_.push_back({token, 0, 0});
        ask();
        std::size_t n = 0;
        for (std::size_t i = 0; i < tokens.size(); ++i)
            if (candidates_[i].logit == 0) tokens[n++] = candidates_[i].id;
        return n;
    }

    void accept(Token token) override {
        if (!awaited_)
            read(token);
        else if (awaited_->push(token))
            begin();
    }

    bool begun() const override { return !awaited_; }

    std::unique_ptr<Mask> clone() const override {
        auto other = std::make_unique<Grammar>(
            vocab_, llama_sampler_ptr(llama_sampler_clone(sampler_.get())), awaited_);
        other->between_ = between_;
        return other;
    }

 private:
    // Gives the sampler the tokens that hold the trigger. It looks for the trigger in them itself,
    // and reads from there.
    void begin() {
        try {
            for (const Token token : awaited_->tokens()) read(token);
            awaited_.reset();
        } catch (const Error&) {
            throw;
        } catch (const std::runtime_error&) {  // the rest of the trigger's last token does not fit
            llama_sampler_reset(sampler_.get());
            awaited_->restart();
        }
    }

    void read(Token token) {
        timed([&] { llama_sampler_accept(sampler_.get(), token); });
        between_ = is_whole_text(token);
    }

    // Whether a token stands for whole characters only, at least one.
    bool is_whole_text(Token token) {
        if (vocab_.is_end(token)) return false;
        piece_.clear();
        vocab_.append_piece(token, piece_, true);
        return !piece_.empty() && piece_[0] != '\0' &&
               find_invalid_utf8(piece_) == std::string_view::npos;
    }

    // Whether such a token is allowed; the grammar must be between two characters. Reading a token
    // follows all ways at once, whereas asking for it tries them one by one; but reading takes a
    // second sampler.
    bool can_read(Token token) {
        const llama_sampler_ptr other(llama_sampler_clone(sampler_.get()));
        try {
            timed([&] { llama_sampler_accept(other.get(), token); });
            return true;
        } catch (const Error&) {
            throw;
        } catch (const std::runtime_error&) {
            return false;
        }
    }

    // Sets the logits of all candidates_ that may not come to minus infinity. If a grammar is
    // ambiguous, each further character may take twice as long, or worse. So candidates with few
    // characters are asked for first, and the clock is checked between groups.
    void ask() {
        order_.resize(candidates_.size());
        std::array<std::size_t, kLengths.size() + 1> ends{};
        for (std::size_t i = 0; i < candidates_.size(); ++i) {
            const auto longest =
                std::ranges::lower_bound(kLengths, vocab_.length(candidates_[i].id));
            order_[i] = static_cast<std::uint8_t>(longest - kLengths.begin());
            ++ends[order_[i]];
        }
        std::partial_sum(ends.begin(), ends.end(), ends.begin());
        std::array<std::size_t, kLengths.size() + 1> next{};
        std::copy(ends.begin(), ends.end() - 1, next.begin() + 1);
        sorted_.resize(candidates_.size());
        for (std::size_t i = 0; i < candidates_.size(); ++i)
            sorted_[next[order_[i]]++] = candidates_[i];
        double usual = 0;  // seconds per character in the group of kCompared; 0: not measured
        for (std::size_t group = 0, begin = 0; group < ends.size(); begin = ends[group++]) {
            const auto some = std::span(sorted_).subspan(begin, ends[group] - begin);
            if (some.empty()) continue;
            const double seconds = ask(some);
            if (group == kLengths.size()) break;
            const auto n = static_cast<double>(some.size()) * kLengths[group];
            if (kLengths[group] == kCompared) usual = seconds / n;
            if (kLengths[group] <= kCompared || usual == 0) continue;
            const double most = std::max(kMoment, kSteep * n * usual);
            // Asked up to three times: something else may have held it up.
            too_slow_ |= seconds > most && ask(some) > most && ask(some) > most;
        }
        for (std::size_t i = candidates_.size(); i-- > 0;)
            candidates_[i].logit = sorted_[--next[order_[i]]].logit;
    }

    double ask(std::span<llama_token_data> candidates) {
        llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
        return timed([&] { llama_sampler_apply(sampler_.get(), &array); });
    }

    // Does `work` and returns its seconds. Throws DecodeError if the grammar is too ambiguous.
    template <typename Work>
    double timed(Work work) {
        using Clock = std::chrono::steady_clock;
        const auto started = Clock::now();
        if (!too_slow_) work();
        const std::chrono::duration<double> taken = Clock::now() - started;
        too_slow_ |= taken > kLongestStep;
        if (too_slow_)
            throw DecodeError(
                "The grammar is too ambiguous to be followed: there are too many ways to read the "
                "text so far; rewrite rules that call themselves so that their alternatives begin "
                "with different characters.");
        return taken.count();
    }

    const Vocab& vocab_;
    llama_sampler_ptr sampler_;
    std::vector<llama_token_data> candidates_;
    // Used by ask and is_whole_text only; kept so that their buffers are used again.
    std::vector<llama_token_data> sorted_;
    std::vector<std::uint8_t> order_;  // [candidate]: its group, an index of kLengths
    std::string piece_;
    std::optional<Trigger> awaited_;  // none: the grammar holds
    bool between_ = true;             // whether its place is between two characters, not in one
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

void check_triggers(const std::vector<std::string>& triggers) {
    constexpr std::size_t kMost = 65536;  // bytes of all texts together
    // llama.cpp makes one std::regex of all texts; for thousands of them that takes seconds.
    constexpr std::size_t kMostTexts = 1024;
    // Most bytes of one text: llama.cpp makes a std::regex of it, which calls itself for each byte.
    constexpr std::size_t kMostOfOne = 4096;
    if (triggers.size() > kMostTexts)
        throw InvalidArgument("grammar_triggers are " + std::to_string(triggers.size()) +
                              " texts; at most 1024 can be waited for.");
    std::size_t n_bytes = 0;
    for (const std::string& one : triggers) {
        if (one.empty() || one.find('\0') != std::string::npos)
            throw InvalidArgument("A text of grammar_triggers is empty or holds a NUL character.");
        if (one.size() > kMostOfOne)
            throw InvalidArgument("A text of grammar_triggers has more than 4096 bytes.");
        n_bytes += one.size();
    }
    if (n_bytes > kMost)
        throw InvalidArgument("grammar_triggers have more than 65536 bytes together.");
}

std::unique_ptr<Mask> make_grammar(const Vocab& vocab, const std::string& gbnf,
                                   const std::vector<std::string>& triggers) {
    if (gbnf.size() > kMaxBytes)
        throw InvalidArgument("The grammar has " + std::to_string(gbnf.size()) +
                              " bytes; at most 65536 can be read.");
    if (gbnf.find('\0') != std::string::npos)
        throw InvalidArgument("The grammar holds a NUL character.");
    check_triggers(triggers);
    const Gbnf grammar = parse_gbnf(gbnf);
    check_beginnings(grammar);
    std::optional<Trigger> awaited;
    if (!triggers.empty()) awaited.emplace(vocab, triggers);
    const ErrorLog errors;
    llama_sampler_ptr sampler;
    // Stderr is not captured for a grammar that will be read.
    if (grammar.whole) sampler.reset(init_sampler(vocab, gbnf, awaited));
    if (!sampler) {
        StderrCapture capture;
        sampler.reset(init_sampler(vocab, gbnf, awaited));
        const std::string printed = capture.first_line();
        if (!sampler)
            throw InvalidArgument("The grammar cannot be read: " + reason(printed, errors.first()) +
                                  ".");
    }
    return std::make_unique<Grammar>(vocab, std::move(sampler), std::move(awaited));
}

}  // namespace specllama
