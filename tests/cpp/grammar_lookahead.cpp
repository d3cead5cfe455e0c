#include "draft/scout.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"

using namespace specllama;

namespace {

// Each byte is its own token, and two more are the end and a word.
constexpr Token kEnd = 256;
constexpr Token kWord = 257;
const std::string kWordText = "ab";

ByteTokens all_bytes() {
    ByteTokens tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.of[byte] = byte;
    tokens.end = kEnd;
    return tokens;
}

const ByteTokens kTokens = all_bytes();

// The text must be one of a few, in which "?" stands for any byte.
class OneOf final : public Mask {
 public:
    explicit OneOf(std::vector<std::string> texts, int* n_asked = nullptr)
        : texts_(std::move(texts)), n_asked_(n_asked) {}

    void apply(std::span<float>) override {}

    bool allows(Token token) override {
        if (n_asked_ != nullptr) ++*n_asked_;
        if (token == kEnd) return std::ranges::any_of(texts_, &std::string::empty);
        const std::string bytes = token == kWord ? kWordText : std::string(1, char(token));
        return std::ranges::any_of(texts_, [&](const std::string& text) {
            for (std::size_t i = 0; i < bytes.size(); ++i)
                if (i == text.size() || (text[i] != '?' && text[i] != bytes[i])) return false;
            return true;
        });
    }

    std::size_t keep_allowed(std::span<Token> tokens) override {
        const auto kept = std::stable_partition(tokens.begin(), tokens.end(),
                                                [&](Token token) { return allows(token); });
        return kept - tokens.begin();
    }

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
    std::vector<std::string> texts_;
    int* n_asked_;
};

// A scout at the beginning of one of these texts, without habits of its own.
Habits nobodys;
Scout scout_of(std::vector<std::string> texts, int* n_asked = nullptr, Habits& habits = nobodys) {
    Scout scout(kTokens, habits);
    scout.enter(std::make_unique<OneOf>(std::move(texts), n_asked), "");
    return scout;
}

bool follow(Scout& scout, const std::string& text) {
    return std::ranges::all_of(text, [&](const char& byte) {
        return scout.follow(static_cast<unsigned char>(byte), {&byte, 1});
    });
}

}  // namespace

TEST(what_alone_may_come_is_foreseen) {
    Scout scout = scout_of({"name: ?????", "name: \"?\""});
    scout.look(100);
    CHECK(scout.bytes() == "name: ");
    CHECK(std::ranges::count(scout.confidence(), 1.0F) == 6);
}

TEST(so_far_as_it_is_asked_to) {
    Scout scout = scout_of({"abcdefgh"});
    scout.look(3);
    CHECK(scout.bytes() == "abc");
    scout.look(2);
    CHECK(scout.bytes() == "abc");
    scout.look(99);
    CHECK(scout.bytes() == "abcdefgh");
}

TEST(what_came_of_it_is_not_asked_about_again) {
    int n_asked = 0;
    Scout scout = scout_of({"abcdefgh?"}, &n_asked);
    scout.look(100);
    const int n = n_asked;
    CHECK(follow(scout, "abc"));
    CHECK(scout.bytes() == "defgh");
    scout.look(100);
    CHECK(n_asked == n);
}

TEST(a_text_that_may_end_is_not_forced_to_go_on) {
    Scout scout = scout_of({"ab", "abcd"});
    scout.look(100);
    CHECK(scout.bytes() == "ab");
    CHECK(follow(scout, "abc"));
    scout.look(100);
    CHECK(scout.bytes() == "d");
}

TEST(nor_one_that_must_end) {
    Scout scout = scout_of({""});
    scout.look(100);
    CHECK(scout.bytes().empty());
}

TEST(characters_of_several_bytes) {
    Scout scout = scout_of({"\u20ac?", "\u20ac!"});
    scout.look(100);
    CHECK(scout.bytes() == "\u20ac");
    Scout begun = scout_of({"\u00e9", "\u00e8"});  // they begin alike
    begun.look(100);
    CHECK(begun.bytes() == "\xc3");
}

TEST(a_token_that_reaches_further) {
    Scout scout = scout_of({"xa?"});
    scout.look(100);
    CHECK(scout.bytes() == "xa");
    CHECK(follow(scout, "x"));
    CHECK(scout.follow(kWord, kWordText));
    CHECK(scout.bytes().empty());
    scout.look(100);
    CHECK(scout.bytes().empty());
}

TEST(a_habit_is_kept_over_other_texts_and_may_break) {
    const std::vector<std::string> texts = {"a:1", "a: 1"};
    Habits habits;
    Scout scout = scout_of(texts, nullptr, habits);
    scout.look(100);
    CHECK(scout.bytes() == "a:");
    CHECK(follow(scout, "a: "));
    // The same place again.
    scout.enter(std::make_unique<OneOf>(texts), "");
    scout.look(100);
    CHECK(scout.bytes() == "a: 1");
    CHECK(scout.confidence()[1] == 1);
    CHECK(scout.confidence()[2] == 0.5F);
    CHECK(scout.confidence()[3] == 1);
    CHECK(follow(scout, "a:"));
    CHECK(!scout.follow('1', "1"));
    // It was broken once and kept never: no habit.
    scout.enter(std::make_unique<OneOf>(texts), "");
    scout.look(100);
    CHECK(scout.bytes() == "a:");
}

TEST(white_space_counts_where_there_is_nothing_else) {
    const std::vector<Token> left = {1, 2};
    CHECK(Habits::place("\n", left) != Habits::place("", left));
    CHECK(Habits::place("\n", left) != Habits::place("\n ", left));
    CHECK(Habits::place("ab: ", left) == Habits::place("x: ", left));
}

TEST(another_text_has_the_same_habits) {
    Habits habits;
    Scout first = scout_of({"{a:1", "{a: 1"}, nullptr, habits);
    first.look(100);
    CHECK(follow(first, "{a: 1"));
    Scout second = scout_of({"[bc:2]", "[bc: 2]"}, nullptr, habits);
    second.look(100);
    CHECK(second.bytes() == "[bc:");  // one blank or a digit: another place
    Scout third = scout_of({"[bc:1]", "[bc: 1]"}, nullptr, habits);
    third.look(100);
    CHECK(third.bytes() == "[bc: 1]");
}

TEST(a_habit_that_changes_is_soon_another) {
    Habits habits;
    for (int i = 0; i < 1000; ++i) habits.learn(7, ' ');
    CHECK(habits.find(7)->confidence() > 0.9F);
    for (int i = 0; i < Habits::kMemory; ++i) habits.learn(7, i % 2 == 0 ? '\n' : ' ');
    CHECK(habits.find(7)->confidence() < 0.5F);
    for (int i = 0; i < Habits::kMemory; ++i) habits.learn(7, '\n');
    CHECK(habits.find(7)->byte == '\n');
    CHECK(habits.find(7)->confidence() > 0.5F);
}

TEST(places_without_end_are_forgotten) {
    Habits habits;
    for (Habits::Place place = 0; place < Habits::kMostPlaces; ++place) habits.learn(place, ' ');
    CHECK(habits.find(0) != nullptr);
    habits.learn(1, ' ');  // one that is known
    CHECK(habits.find(0) != nullptr);
    habits.learn(Habits::kMostPlaces, ' ');
    CHECK(habits.find(0) == nullptr);
    CHECK(habits.find(Habits::kMostPlaces) != nullptr);
}

TEST(what_the_mask_forbids_is_not_followed) {
    Scout scout = scout_of({"abc"});
    CHECK(!scout.follow('x', "x"));
    scout.enter(std::make_unique<OneOf>(std::vector<std::string>{"abc"}), "");
    scout.look(100);
    CHECK(!scout.follow(kEnd, ""));  // a token without bytes
}

TEST(whoever_takes_too_long_is_not_asked_again) {
    class Slow final : public Mask {
     public:
        void apply(std::span<float>) override {}
        bool allows(Token) override { return true; }
        std::size_t keep_allowed(std::span<Token> tokens) override {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            tokens[0] = 'a';
            return 1;
        }
        void accept(Token) override {}
        bool begun() const override { return true; }
        std::unique_ptr<Mask> clone() const override { return nullptr; }
    };
    Scout scout(kTokens, nobodys);
    scout.enter(std::make_unique<Slow>(), "");
    scout.look(100);
    CHECK(scout.tired());
    CHECK(scout.bytes().size() <= 1);
}
