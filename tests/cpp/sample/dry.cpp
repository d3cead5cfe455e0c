#include "sample/dry.h"

#include <map>
#include <string>
#include <vector>

#include "check.h"

using namespace specllama;

namespace {

// Every token is a letter, except for those in `texts`.
std::map<Token, double> penalties(SamplingOptions options, const std::string& text,
                                  const std::map<Token, std::string>& texts = {}) {
    options.dry_multiplier = 1;
    options.dry_base = 2;
    Dry dry(options, [&](Token token, std::string& out) {
        if (const auto own = texts.find(token); own != texts.end())
            out += own->second;
        else
            out += static_cast<char>(token);
    });
    std::map<Token, double> found;
    // Nothing of this text affects the next.
    for (const std::string& one : {std::string("xyxyxy"), text}) {
        found.clear();
        dry.penalise(std::vector<Token>(one.begin(), one.end()),
                     [&](Token token, double penalty) { found[token] = penalty; });
    }
    return found;
}

SamplingOptions until(std::vector<std::string> breakers) {
    SamplingOptions options;
    options.dry_sequence_breakers = std::move(breakers);
    return options;
}

using Penalties = std::map<Token, double>;

}  // namespace

TEST(dry_penalises_repetitions_by_the_length_of_the_match) {
    CHECK(penalties({}, "") == Penalties{});
    CHECK(penalties({}, "a") == Penalties{});
    CHECK(penalties({}, "abcdab") == (Penalties{{'c', 1}}));
    CHECK(penalties({}, "wabcxabcdyzabc") == (Penalties{{'x', 2}, {'d', 2}}));
    CHECK(penalties({}, "bcdabceabc") == (Penalties{{'d', 1}, {'e', 2}}));
    CHECK(penalties({}, "abxab") == (Penalties{{'x', 1}}));
    CHECK(penalties({}, "bxab") == Penalties{});  // one token is not a repetition
    SamplingOptions one;
    one.dry_allowed_length = 1;
    CHECK(penalties(one, "bxab") == (Penalties{{'x', 1}}));
    CHECK(penalties({}, "aaaaa") == (Penalties{{'a', 4}}));  // a match of four that overlaps itself
}

TEST(dry_considers_only_the_last_tokens) {
    SamplingOptions options;
    options.dry_penalty_last_n = 6;
    CHECK(penalties(options, "abcabxxab") == (Penalties{{'x', 1}}));
    options.dry_penalty_last_n = 5;
    CHECK(penalties(options, "abcabxab") == (Penalties{{'x', 1}}));
    options.dry_penalty_last_n = 4;
    CHECK(penalties(options, "abcabxab") == Penalties{});
}

TEST(a_dry_repetition_ends_at_a_breaker) {
    CHECK(penalties(until({}), "ab\ncdxab\ncd") == (Penalties{{'x', 8}}));
    CHECK(penalties(until({"\n"}), "ab\ncdxab\ncd") == (Penalties{{'x', 1}}));
    CHECK(penalties(until({}), "ab\nxab\n") == (Penalties{{'x', 2}}));
    CHECK(penalties(until({"\n"}), "ab\nxab\n") == Penalties{});
    CHECK(penalties(until({"?", "\n"}), "ab\nc?dexab\nc?de") == (Penalties{{'x', 1}}));
    // A breaker is not penalised itself.
    CHECK(penalties(until({"\n"}), "ab\nab") == Penalties{});
    CHECK(penalties(until({}), "ab\nab") == (Penalties{{'\n', 1}}));
}

TEST(a_dry_breaker_can_span_tokens_or_be_part_of_one) {
    CHECK(penalties(until({"ab"}), "abcdxabcd") == (Penalties{{'x', 1}}));
    // The breaker begins before the match and ends in its first token.
    CHECK(penalties(until({"zb"}), "ybcdxzbcd") == (Penalties{{'x', 1}}));
    CHECK(penalties(until({"zb"}), "zbcdxybcd") == (Penalties{{'x', 2}}));
    CHECK(penalties(until({"2"}), "abcdxabcd", {{'b', "123"}}) == (Penalties{{'x', 1}}));
    CHECK(penalties(until({"31"}), "aabcdxabcd", {{'a', "123"}}) == (Penalties{{'x', 4}}));
    CHECK(penalties(until({"31"}), "aabcdxaabcd", {{'a', "123"}}) == (Penalties{{'x', 2}}));
}

TEST(dry_without_token_texts_has_no_breakers) {
    SamplingOptions options;
    options.dry_multiplier = 1;
    Dry dry(options, nullptr);
    int n = 0;
    dry.penalise(std::vector<Token>{1, '\n', 2, 1, '\n'}, [&](Token token, double) {
        CHECK(token == 2);
        ++n;
    });
    CHECK(n == 1);
}

TEST(dry_is_off_without_a_multiplier_or_tokens) {
    SamplingOptions options;
    CHECK(!Dry(options, nullptr).on());
    options.dry_multiplier = 1;
    CHECK(Dry(options, nullptr).on());
    options.dry_penalty_last_n = 0;
    CHECK(!Dry(options, nullptr).on());
}
