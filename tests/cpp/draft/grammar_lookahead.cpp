#include "draft/constraint/grammar_lookahead.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "check.h"

using namespace specllama;

namespace {

// Each byte is a token; two more tokens are the end and a word.
constexpr Token kEnd = 256;
constexpr Token kWord = 257;
const std::string kWordText = "ab";

TokenBytes all_bytes() {
    TokenBytes tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.add(std::string(1, static_cast<char>(byte)));
    tokens.add("");
    tokens.add(kWordText);
    return tokens;
}

const TokenBytes kTokens = all_bytes();

// Allows only these texts, in which "?" is any byte.
class OneOf final : public Mask {
 public:
    explicit OneOf(std::vector<std::string> texts, int* n_asked = nullptr)
        : texts_(std::move(texts)), n_asked_(n_asked) {}

    Bits allowed() override {
        if (n_asked_ != nullptr) ++*n_asked_;
        bits_.assign(kTokens.size() / 32 + 1, 0);
        for (Token token = 0; token <= kWord; ++token)
            if (may_come(token)) bits_[token / 32] |= std::uint32_t{1} << (token % 32);
        return bits_;
    }

    std::size_t n_allowed(TokenSpan draft) override { return may_come(draft[0]) ? 1 : 0; }

    void accept(Token token) override {
        const std::string bytes = token == kWord ? kWordText : std::string(1, char(token));
        for (const char byte : bytes) {
            std::erase_if(texts_, [&](const std::string& text) {
                return text.empty() || (text[0] != '?' && text[0] != byte);
            });
            for (std::string& text : texts_) text.erase(0, 1);
        }
    }

    bool begun() const override { return true; }
    std::unique_ptr<Mask> clone() const override { return std::make_unique<OneOf>(texts_); }

 private:
    bool may_come(Token token) const {
        if (token == kEnd) return std::ranges::any_of(texts_, &std::string::empty);
        const std::string bytes = token == kWord ? kWordText : std::string(1, char(token));
        return std::ranges::any_of(texts_, [&](const std::string& text) {
            for (std::size_t i = 0; i < bytes.size(); ++i)
                if (i == text.size() || (text[i] != '?' && text[i] != bytes[i])) return false;
            return true;
        });
    }

    std::vector<std::string> texts_;
    int* n_asked_;
    std::vector<std::uint32_t> bits_;
};

// A lookahead from the beginning of one of these texts (default: with a shared history).
ByteHistory nobodys;
GrammarLookahead lookahead_of(std::vector<std::string> texts, int* n_asked = nullptr,
                              ByteHistory& history = nobodys) {
    GrammarLookahead lookahead(kTokens, history);
    lookahead.enter(std::make_unique<OneOf>(std::move(texts), n_asked), "");
    return lookahead;
}

bool follow(GrammarLookahead& lookahead, const std::string& text) {
    return std::ranges::all_of(text, [&](const char& byte) {
        return lookahead.follow(static_cast<unsigned char>(byte), {&byte, 1});
    });
}

}  // namespace

TEST(the_only_allowed_text_is_predicted) {
    GrammarLookahead lookahead = lookahead_of({"name: ?????", "name: \"?\""});
    lookahead.advance(100);
    CHECK(lookahead.bytes() == "name: ");
    CHECK(std::ranges::count(lookahead.confidence(), 1.0F) == 6);
}

TEST(predictions_have_at_most_the_requested_length) {
    GrammarLookahead lookahead = lookahead_of({"abcdefgh"});
    lookahead.advance(3);
    CHECK(lookahead.bytes() == "abc");
    lookahead.advance(2);
    CHECK(lookahead.bytes() == "abc");
    lookahead.advance(99);
    CHECK(lookahead.bytes() == "abcdefgh");
}

TEST(known_results_are_not_computed_again) {
    int n_asked = 0;
    GrammarLookahead lookahead = lookahead_of({"abcdefgh?"}, &n_asked);
    lookahead.advance(100);
    const int n = n_asked;
    CHECK(follow(lookahead, "abc"));
    CHECK(lookahead.bytes() == "defgh");
    lookahead.advance(100);
    CHECK(n_asked == n);
}

TEST(a_text_that_may_end_has_no_forced_continuation) {
    GrammarLookahead lookahead = lookahead_of({"ab", "abcd"});
    lookahead.advance(100);
    CHECK(lookahead.bytes() == "ab");
    CHECK(follow(lookahead, "abc"));
    lookahead.advance(100);
    CHECK(lookahead.bytes() == "d");
}

TEST(a_text_that_must_end_has_no_forced_continuation) {
    GrammarLookahead lookahead = lookahead_of({""});
    lookahead.advance(100);
    CHECK(lookahead.bytes().empty());
}

TEST(forced_characters_of_several_bytes_are_predicted) {
    GrammarLookahead lookahead = lookahead_of({"\u20ac?", "\u20ac!"});
    lookahead.advance(100);
    CHECK(lookahead.bytes() == "\u20ac");
    GrammarLookahead begun = lookahead_of({"\u00e9", "\u00e8"});  // they share their first byte
    begun.advance(100);
    CHECK(begun.bytes() == "\xc3");
}

TEST(a_token_can_extend_beyond_the_forced_text) {
    GrammarLookahead lookahead = lookahead_of({"xa?"});
    lookahead.advance(100);
    CHECK(lookahead.bytes() == "xa");
    CHECK(follow(lookahead, "x"));
    CHECK(lookahead.follow(kWord, kWordText));
    CHECK(lookahead.bytes().empty());
    lookahead.advance(100);
    CHECK(lookahead.bytes().empty());
}

TEST(the_last_choice_is_predicted_until_it_changes) {
    const std::vector<std::string> texts = {"a:1", "a: 1"};
    ByteHistory history;
    GrammarLookahead lookahead = lookahead_of(texts, nullptr, history);
    lookahead.advance(100);
    CHECK(lookahead.bytes() == "a:");
    CHECK(follow(lookahead, "a: "));
    // The same context again.
    lookahead.enter(std::make_unique<OneOf>(texts), "");
    lookahead.advance(100);
    CHECK(lookahead.bytes() == "a: 1");
    CHECK(lookahead.confidence()[1] == 1);
    CHECK(lookahead.confidence()[2] == 0.5F);
    CHECK(lookahead.confidence()[3] == 1);
    CHECK(follow(lookahead, "a:"));
    CHECK(!lookahead.follow('1', "1"));
    // It was wrong once and never right.
    lookahead.enter(std::make_unique<OneOf>(texts), "");
    lookahead.advance(100);
    CHECK(lookahead.bytes() == "a:");
}

TEST(white_space_is_a_context_if_there_is_no_other) {
    const std::string left = "1 ";
    CHECK(ByteHistory::context("\n", left) != ByteHistory::context("", left));
    CHECK(ByteHistory::context("\n", left) != ByteHistory::context("\n ", left));
    CHECK(ByteHistory::context("ab: ", left) == ByteHistory::context("x: ", left));
}

TEST(texts_share_the_byte_history) {
    ByteHistory history;
    GrammarLookahead first = lookahead_of({"{a:1", "{a: 1"}, nullptr, history);
    first.advance(100);
    CHECK(follow(first, "{a: 1"));
    GrammarLookahead second = lookahead_of({"[bc:2]", "[bc: 2]"}, nullptr, history);
    second.advance(100);
    CHECK(second.bytes() == "[bc:");  // a blank or the digit 2: another context
    GrammarLookahead third = lookahead_of({"[bc:1]", "[bc: 1]"}, nullptr, history);
    third.advance(100);
    CHECK(third.bytes() == "[bc: 1]");
}

TEST(counts_of_the_byte_history_follow_a_change) {
    ByteHistory history;
    for (int i = 0; i < 1000; ++i) history.learn(7, ' ');
    CHECK(history.find(7)->confidence() > 0.9F);
    for (int i = 0; i < ByteHistory::kMemory; ++i) history.learn(7, i % 2 == 0 ? '\n' : ' ');
    CHECK(history.find(7)->confidence() < 0.5F);
    for (int i = 0; i < ByteHistory::kMemory; ++i) history.learn(7, '\n');
    CHECK(history.find(7)->byte == '\n');
    CHECK(history.find(7)->confidence() > 0.5F);
}

TEST(old_contexts_of_the_byte_history_are_forgotten) {
    ByteHistory history;
    for (ByteHistory::Context place = 0; place < ByteHistory::kMaxContexts; ++place)
        history.learn(place, ' ');
    CHECK(history.find(0) != nullptr);
    history.learn(1, ' ');  // a known context
    CHECK(history.find(0) != nullptr);
    history.learn(ByteHistory::kMaxContexts, ' ');
    CHECK(history.find(0) == nullptr);
    CHECK(history.find(ByteHistory::kMaxContexts) != nullptr);
}

TEST(tokens_forbidden_by_the_mask_are_not_followed) {
    GrammarLookahead lookahead = lookahead_of({"abc"});
    CHECK(!lookahead.follow('x', "x"));
    lookahead.enter(std::make_unique<OneOf>(std::vector<std::string>{"abc"}), "");
    lookahead.advance(100);
    CHECK(!lookahead.follow(kEnd, ""));  // a token without bytes
}

TEST(a_single_allowed_byte_and_a_required_end_are_forced) {
    GrammarLookahead text = lookahead_of({"ab"});
    text.advance(100);
    CHECK(text.forced());
    CHECK(follow(text, "ab"));
    text.advance(100);
    CHECK(text.forced());
    GrammarLookahead choice = lookahead_of({"a", "b"});
    choice.advance(100);
    CHECK(!choice.forced());
    GrammarLookahead end = lookahead_of({"", "b"});
    end.advance(100);
    CHECK(!end.forced());
}
