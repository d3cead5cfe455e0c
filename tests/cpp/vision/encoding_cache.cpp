#include "vision/encoding_cache.h"

#include <vector>

#include "check.h"

using namespace specllama;

namespace {

const std::vector<float> kFour = {1, 2, 3, 4};

}  // namespace

TEST(states_that_were_kept_are_found) {
    EncodingCache cache(1000);
    CHECK(cache.find("a").empty());
    cache.keep("a", kFour);
    cache.keep("b", std::vector<float>{5});
    const auto found = cache.find("a");
    CHECK((std::vector(found.begin(), found.end()) == kFour));
    CHECK(cache.find("b").size() == 1);
    CHECK(cache.find("c").empty());
}

TEST(those_not_used_for_the_longest_time_make_room) {
    EncodingCache cache(2 * sizeof(float) * kFour.size());
    cache.keep("a", kFour);
    cache.keep("b", kFour);
    CHECK(!cache.find("a").empty());
    cache.keep("c", kFour);
    CHECK(!cache.find("a").empty());
    CHECK(cache.find("b").empty());
    CHECK(!cache.find("c").empty());
}

TEST(states_larger_than_the_limit_are_not_kept_and_remove_nothing) {
    EncodingCache cache(sizeof(float) * kFour.size());
    cache.keep("a", kFour);
    cache.keep("b", std::vector<float>(5));
    CHECK(!cache.find("a").empty());
    CHECK(cache.find("b").empty());
}
