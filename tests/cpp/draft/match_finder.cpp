#include "draft/ngram/match_finder.h"

#include <random>
#include <span>
#include <vector>

#include "check.h"
#include "specllama/error.h"

using namespace specllama;

namespace {

MatchFinder finder_of(const std::vector<Token>& tokens, std::int64_t max_tokens = 1 << 16) {
    MatchFinder finder(max_tokens);
    finder.append(tokens);
    return finder;
}

}  // namespace

TEST(the_continuation_of_the_same_tokens_is_found) {
    const MatchFinder finder = finder_of({1, 2, 3, 4, 5, 6, 1, 2, 3, 4});
    const Match match = finder.find();
    CHECK(match.length == 4);
    CHECK(match.continuation.size() == 6);
    CHECK(match.token(0) == 5);
    // After the end of the text, the copy continues in itself.
    CHECK(match.token(6) == 5);
}

TEST(short_matches_are_ignored) {
    CHECK(finder_of({1, 2, 3, 9, 1, 2, 3}).find().length == 0);
    CHECK(MatchFinder(64).find().length == 0);
}

TEST(the_longest_match_wins) {
    const MatchFinder finder =
        finder_of({7, 1, 2, 3, 4, 50, 8, 1, 2, 3, 4, 60, 9, 1, 2, 3, 4, 60, 7, 1, 2, 3, 4});
    CHECK(finder.find().length == 5);
    CHECK(finder.find().token(0) == 50);
    CHECK(finder.find(std::vector<Token>{1, 2, 3, 4}).token(0) == 60);  // the most frequent
}

TEST(all_matches_are_listed_longest_first) {
    const MatchFinder finder =
        finder_of({7, 1, 2, 3, 4, 50, 8, 1, 2, 3, 4, 60, 9, 1, 2, 3, 4, 70, 7, 1, 2, 3, 4});
    std::vector<Match> found(4);
    CHECK(finder.find_all(finder.tokens(), found) == 3);
    CHECK(found[0].length == 5 && found[0].token(0) == 50);
    CHECK(found[1].length == 4 && found[1].token(0) == 70);  // the latest
    CHECK(found[2].length == 4 && found[2].token(0) == 60);
    CHECK(finder.find_all(finder.tokens(), std::span(found).first(2)) == 2);
    CHECK(found[0].token(0) == 50 && found[1].token(0) == 70);
    CHECK(finder.find_all(std::vector<Token>{1, 2, 9, 9}, found) == 0);
}

TEST(truncated_tokens_are_not_found) {
    MatchFinder finder = finder_of({1, 2, 3, 4, 5, 6, 7});
    finder.truncate(2);
    finder.append(std::vector<Token>{1, 2, 3, 4});
    CHECK(finder.size() == 6);
    CHECK(finder.find().length == 0);
}

TEST(matches_agree_with_the_text) {
    std::mt19937 random(1);
    MatchFinder finder(256);  // forgets older tokens
    int n_found = 0;
    for (int i = 0; i < 5000; ++i) {
        finder.append(static_cast<Token>(random() % 3));
        const Match match = finder.find();
        if (match.length == 0) continue;
        ++n_found;
        const TokenSpan held = finder.tokens();
        const auto place = static_cast<std::size_t>(match.continuation.data() - held.data());
        CHECK(common_suffix(held, held.first(place)) >= match.length);
        CHECK(!match.continuation.empty());
    }
    CHECK(n_found > 4000);
    CHECK(finder.size() == 5000);
    CHECK(finder.tokens().size() <= 256);
}

TEST(a_finder_of_size_0_is_refused) {
    CHECK_THROWS(InvalidArgument, MatchFinder(MatchFinder::kMinTokens - 1));
    CHECK_THROWS(InvalidArgument, MatchFinder(MatchFinder::kMaxTokens + 1));
}
