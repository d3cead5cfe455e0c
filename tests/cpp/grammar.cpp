#include <string>

#include "check.h"
#include "grammar/beginnings.h"
#include "grammar/gbnf.h"
#include "specllama/error.h"

using namespace specllama;

namespace {

constexpr Gbnf::Symbol kChar = Gbnf::kCharacter;
using Sequences = std::vector<Gbnf::Sequence>;

bool can_be_read(const std::string& text) {
    try {
        check_beginnings(parse_gbnf(text));
        return true;
    } catch (const InvalidArgument&) {
        return false;
    }
}

// n rules, each made by `rule` of its own name and the next one's; the last one is a character.
template <typename Rule>
std::string ladder(int n, Rule rule) {
    std::string text = "root ::= r0\n";
    for (int i = 0; i < n; ++i)
        text += rule("r" + std::to_string(i), "r" + std::to_string(i + 1)) + "\n";
    return text + "r" + std::to_string(n) + " ::= \"x\"\n";
}

}  // namespace

TEST(rules_are_those_that_llama_cpp_makes) {
    const std::string text =
        "# a comment\nroot ::= \"a\\\"b\" name? # another\nname ::= [^\\]x] | (\"c\" |\n \".\")+ "
        ".\n";
    const Gbnf grammar = parse_gbnf(text);
    CHECK(grammar.rules.size() == 5);
    const auto& rules = grammar.rules;
    CHECK(rules[0].name == "root" && rules[1].name == "name");
    // A literal may have an escape too many: of its characters only the first matters.
    CHECK(rules[0].alternatives == Sequences{{kChar, kChar, kChar, kChar, 2}});
    CHECK(rules[2].alternatives == (Sequences{{1}, {}}));  // name?
    CHECK(rules[3].alternatives == (Sequences{{kChar}, {kChar}}));
    CHECK(rules[4].alternatives == (Sequences{{3, 4}, {}}));  // more of the group
    CHECK(rules[1].alternatives[1] == (Gbnf::Sequence{3, 4, kChar}));
}

TEST(repetitions_are_copies_and_rules) {
    const Gbnf grammar = parse_gbnf("root ::= \"a\"{2,4} <x>{3} !<a\\> \"b\"{0} \"c\"{1,}");
    CHECK(grammar.rules.size() == 4);
    CHECK(grammar.rules[0].alternatives ==
          Sequences{{kChar, kChar, 2, kChar, kChar, kChar, kChar, kChar, 3}});
    CHECK(grammar.rules[1].alternatives == (Sequences{{kChar}, {}}));
    CHECK(grammar.rules[2].alternatives == (Sequences{{kChar, 1}, {}}));
    CHECK(grammar.rules[3].alternatives == (Sequences{{kChar, 3}, {}}));
}

TEST(what_is_no_grammar_ends_it) {
    for (const char* text :
         {"", "root", "root ::= \"a", "root ::= (", "root ::= \"a\"{", "root ::= *", "root ::= [a",
          "root ::= <a", "::=", "root ::= \"\\", "root ::= a #"})
        CHECK(parse_gbnf(text).rules.size() <= 2);
    CHECK(parse_gbnf("root ::= \"a\" ) \nb ::= \"c\"").rules.size() == 1);
}

TEST(what_would_be_too_much_is_refused) {
    const auto parse = [](const std::string& text) { parse_gbnf(text); };
    CHECK_THROWS(InvalidArgument, parse("root ::= " + std::string(65, '(')));
    CHECK_THROWS(InvalidArgument, parse("root ::= \"a\"{0,1999} \"b\"{0,1999} \"c\"{0,1999}"));
    CHECK_THROWS(InvalidArgument, parse("root ::= [" + std::string(600, 'a') + "]{0,2000}"));
    CHECK_THROWS(InvalidArgument, parse("root ::= \"a\"{3,2}"));
    CHECK_THROWS(InvalidArgument, parse("root ::= \"a\"{2001}"));
    CHECK_THROWS(InvalidArgument, parse("root ::= \"a\"{0,99999999999999999999}"));
    CHECK(parse_gbnf("root ::= \"a\"{0,2001}").rules.size() == 2);  // no limit
}

TEST(no_rule_begins_with_itself) {
    CHECK(!can_be_read("root ::= root \"a\" | \"b\""));
    CHECK(!can_be_read("root ::= a\na ::= b \"x\"\nb ::= a | \"c\""));
    CHECK(!can_be_read("root ::= \"q\"\nunused ::= unused \"a\" | \"b\""));
    CHECK(!can_be_read("root ::= e root \"a\" | \"b\"\ne ::= \"c\" | \"\""));
    // llama.cpp does not see that f may be empty, but comes back to root for ever.
    CHECK(!can_be_read("root ::= e root \"a\" | \"b\"\ne ::= f\nf ::= \"c\" | \"\""));
    // Nor here, where it comes back to the same place, and stops.
    CHECK(can_be_read("root ::= (\" \"*)* \"x\""));
    CHECK(can_be_read("root ::= \"a\" root | \"b\""));
    CHECK(can_be_read("root ::= \"(\" root \")\" root | \"\""));
}

TEST(ways_to_begin_are_counted) {
    const auto doubled = [](const std::string& one, const std::string& next) {
        return one + " ::= " + next + " \"a\" | " + next + " \"b\"";
    };
    CHECK(can_be_read(ladder(13, doubled)));  // 8192
    CHECK(!can_be_read(ladder(14, doubled)));
    CHECK(!can_be_read(ladder(1000, doubled)));
    const auto twice = [](const std::string& one, const std::string& next) {
        return one + " ::= " + next + " " + next + " | \"\"";
    };
    CHECK(can_be_read(ladder(8, twice)));
    CHECK(!can_be_read(ladder(1000, twice)));
    const auto chained = [](const std::string& one, const std::string& next) {
        return one + " ::= " + next + " | \"" + one + "\"";
    };
    CHECK(can_be_read(ladder(1000, chained)));
    // In a circle: the ways out of it, whichever rule it is entered by.
    CHECK(can_be_read(
        "root ::= a | b\na ::= b | \"x\"\nb ::= c | \"y\"\nc ::= e\ne ::= \"\" | \"z\""));
}
