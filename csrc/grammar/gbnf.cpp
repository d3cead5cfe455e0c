#include "grammar/gbnf.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "specllama/error.h"

namespace specllama {

namespace {

constexpr int kMaxNesting = 64;
constexpr std::size_t kMaxRules = 4096;
constexpr std::size_t kMaxRepeated = std::size_t{1} << 18;
// llama.cpp refuses a repetition whose least number is above this, and takes a greatest number
// above it as no limit.
constexpr std::size_t kMaxTimes = 2000;
constexpr std::size_t kMaxNumber = 1'000'000'000;

[[noreturn]] void throw_too_often() {
    throw InvalidArgument(
        "The grammar has a repetition that asks for more than 2000 times; ask for less.");
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

bool is_of_name(char c) {
    return is_digit(c) || c == '-' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class Parser {
 public:
    explicit Parser(std::string_view text) : text_(text) {}

    Gbnf parse() {
        skip_space(true);
        while (!failed_ && at_ < text_.size()) {
            const std::string_view name = read_name();
            skip_space(false);
            if (name.empty() || !text_.substr(at_).starts_with("::=")) break;
            at_ += 3;
            skip_space(true);
            read_alternatives(number_of(name), false);
            if (peek() != '\r' && peek() != '\n') break;
            skip_space(true);
        }
        grammar_.whole = !failed_ && at_ == text_.size() &&
                         std::ranges::none_of(grammar_.rules, [](const Gbnf::Rule& rule) {
                             return rule.alternatives.empty();
                         });
        return std::move(grammar_);
    }

 private:
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    // If c comes next, moves past it and the space after it. Returns whether it did.
    bool take(char c, bool nested) {
        if (peek() != c) return false;
        ++at_;
        skip_space(nested);
        return true;
    }

    void skip_space(bool newlines) {
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == '#')
                at_ = std::min(text_.find_first_of("\r\n", at_), text_.size()) - 1;
            else if (c != ' ' && c != '\t' && !(newlines && (c == '\r' || c == '\n')))
                return;
        }
    }

    std::string_view read_name() {
        const std::size_t start = at_;
        while (is_of_name(peek())) ++at_;
        return text_.substr(start, at_ - start);
    }

    Gbnf::Symbol number_of(std::string_view name) {
        const auto known = numbers_.find(name);
        if (known != numbers_.end()) return known->second;
        return numbers_[name] = add_rule(name);
    }

    Gbnf::Symbol add_rule(std::string_view name) {
        if (grammar_.rules.size() == kMaxRules)
            throw InvalidArgument("The grammar has more than 4096 rules and repetitions.");
        grammar_.rules.push_back({name, {}});
        return static_cast<Gbnf::Symbol>(grammar_.rules.size() - 1);
    }

    void read_alternatives(Gbnf::Symbol rule, bool nested) {
        std::vector<Gbnf::Sequence> found;
        do {
            found.push_back(read_sequence(grammar_.rules[rule].name, nested));
        } while (!failed_ && take('|', true));
        grammar_.rules[rule].alternatives = std::move(found);
    }

    // owner: name of the rule that the groups and repetitions in the sequence belong to.
    Gbnf::Sequence read_sequence(std::string_view owner, bool nested) {
        Gbnf::Sequence sequence;
        std::size_t last = 0;  // start of what a repetition would repeat
        while (!failed_) {
            const char c = peek();
            if (const std::optional<Times> times = read_times(nested)) {
                repeat(sequence, last, *times, owner);
                continue;
            }
            last = sequence.size();
            if (c == '"' || c == '[') {
                sequence.resize(last + read_quoted(c == '"' ? '"' : ']'), Gbnf::kCharacter);
            } else if (c == '<' || c == '!') {
                read_token();
                sequence.push_back(Gbnf::kCharacter);
            } else if (c == '.') {
                ++at_;
                sequence.push_back(Gbnf::kCharacter);
            } else if (c == '(') {
                sequence.push_back(read_group(owner));
            } else if (is_of_name(c)) {
                sequence.push_back(number_of(read_name()));
            } else {
                break;
            }
            skip_space(nested);
        }
        return sequence;
    }

    // Moves past a quoted text or a character class. Returns an upper bound of its characters.
    std::size_t read_quoted(char end) {
        const std::size_t start = ++at_;
        while (at_ < text_.size() && text_[at_] != end) {
            if (text_[at_++] == '\\') skip_escape();
        }
        failed_ |= at_ >= text_.size();
        return at_++ - start;
    }

    // Moves past what follows a backslash.
    void skip_escape() {
        const char c = peek();
        ++at_;
        for (int n = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0; n > 0; --n) {
            failed_ |= !is_hex(peek());
            ++at_;
        }
        failed_ |= std::string_view("xuUtrn\\\"[]").find(c) == std::string_view::npos;
    }

    // Moves past <token> or !<token>, in which only the last character is special.
    void read_token() {
        const std::size_t end = text_.find('>', at_);
        failed_ |= end == std::string_view::npos;
        if (!failed_) at_ = end + 1;
    }

    Gbnf::Symbol read_group(std::string_view owner) {
        ++at_;
        if (++depth_ > kMaxNesting)
            throw InvalidArgument(
                "The grammar nests more than 64 groups; name some of them as rules.");
        skip_space(true);
        const Gbnf::Symbol group = add_rule(owner);
        read_alternatives(group, true);
        failed_ |= peek() != ')';
        ++at_;
        --depth_;
        return group;
    }

    struct Times {
        std::size_t least;
        std::optional<std::size_t> most;  // none: no limit
    };

    std::optional<Times> read_times(bool nested) {
        if (take('*', nested)) return Times{0, std::nullopt};
        if (take('+', nested)) return Times{1, std::nullopt};
        if (take('?', nested)) return Times{0, 1};
        if (!take('{', nested)) return std::nullopt;
        Times times{read_number(nested), std::nullopt};
        if (!take(',', nested))
            times.most = times.least;
        else if (is_digit(peek()))
            times.most = read_number(nested);
        failed_ |= !take('}', nested);
        if (times.most && *times.most < times.least)
            throw InvalidArgument("The grammar has a repetition {" + std::to_string(times.least) +
                                  "," + std::to_string(*times.most) +
                                  "}, whose most is less than its least.");
        if (times.most && *times.most > kMaxTimes) times.most.reset();
        return times;
    }

    std::size_t read_number(bool nested) {
        failed_ |= !is_digit(peek());
        std::size_t number = 0;
        for (; is_digit(peek()); ++at_) {
            number = number * 10 + static_cast<std::size_t>(peek() - '0');
            if (number > kMaxNumber) throw_too_often();
        }
        skip_space(nested);
        return number;
    }

    // Replaces S, the part of the sequence from `last` on, by `least` copies of S and rules for
    // more: one without a limit, S' ::= S S' | ""; otherwise one for each time, S'' ::= S S' | "".
    void repeat(Gbnf::Sequence& sequence, std::size_t last, const Times& times,
                std::string_view owner) {
        const Gbnf::Sequence once(sequence.begin() + static_cast<std::ptrdiff_t>(last),
                                  sequence.end());
        failed_ |= once.empty();
        if (failed_) return;
        if (times.least > kMaxTimes) throw_too_often();
        const std::size_t optional = times.most ? *times.most - times.least : 1;
        repeated_ += once.size() * (times.least + optional);
        if (repeated_ > kMaxRepeated)
            throw InvalidArgument(
                "The grammar's repetitions have more than 262144 characters; make what is repeated "
                "a rule of its own.");
        sequence.resize(last);
        for (std::size_t i = 0; i < times.least; ++i)
            sequence.insert(sequence.end(), once.begin(), once.end());
        Gbnf::Symbol rest = Gbnf::kCharacter;  // none yet
        for (std::size_t i = 0; i < optional; ++i) {
            const Gbnf::Symbol rule = add_rule(owner);
            Gbnf::Sequence more = once;
            if (!times.most)
                more.push_back(rule);
            else if (i > 0)
                more.push_back(rest);
            grammar_.rules[rule].alternatives = {std::move(more), {}};
            rest = rule;
        }
        if (optional > 0) sequence.push_back(rest);
    }

    const std::string_view text_;
    std::size_t at_ = 0;
    int depth_ = 0;
    std::size_t repeated_ = 0;
    bool failed_ = false;  // the text is not GBNF
    std::unordered_map<std::string_view, Gbnf::Symbol> numbers_;
    Gbnf grammar_;
};

}  // namespace

Gbnf parse_gbnf(std::string_view text) { return Parser(text).parse(); }

}  // namespace specllama
