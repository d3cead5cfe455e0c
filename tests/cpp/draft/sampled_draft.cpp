#include "draft/sampled_draft.h"

#include <vector>

#include "check.h"
#include "sample/distribution.h"

using namespace specllama;

namespace {

// A draft with matches of this length.
SampledDraft draft_of(const std::vector<Token>& tokens, int length) {
    SampledDraft draft;
    for (const Token token : tokens) draft.push(token, {.source = Source::match, .length = length});
    return draft;
}

}  // namespace

TEST(the_rest_of_a_draft_has_its_own_evidence) {
    SampledDraft draft = draft_of({1, 2}, 3);
    CHECK(add_rest(draft, draft_of({1, 2, 4, 5}, 7), 64) == 2);
    CHECK(draft.tokens == std::vector<Token>({1, 2, 4, 5}));
    CHECK(draft.evidence[1].length == 3);
    CHECK(draft.evidence[2].length == 7);
    CHECK(draft.valid());
}

TEST(there_is_no_rest_after_different_tokens) {
    SampledDraft draft = draft_of({1, 2}, 3);
    CHECK(add_rest(draft, draft_of({1, 3, 4}, 7), 64) == 0);
    CHECK(add_rest(draft, draft_of({1, 2}, 7), 64) == 0);
    CHECK(add_rest(draft, draft_of({1}, 7), 64) == 0);
    CHECK(draft.tokens == std::vector<Token>({1, 2}));
}

TEST(a_draft_with_a_rest_is_at_most_as_long_as_its_limit) {
    SampledDraft draft = draft_of({1, 2}, 3);
    CHECK(add_rest(draft, draft_of({1, 2, 4, 5}, 7), 2) == 0);
    CHECK(add_rest(draft, draft_of({1, 2, 4, 5}, 7), 3) == 1);
    CHECK(draft.tokens == std::vector<Token>({1, 2, 4}));
}

TEST(drawn_drafts_have_no_rest_and_are_not_a_rest) {
    const Distribution some = {{.token = 2, .probability = 1}};
    SampledDraft drawn = draft_of({1}, 3);
    drawn.push(2, {}, &some);
    CHECK(add_rest(drawn, draft_of({1, 2, 4}, 7), 64) == 0);
    SampledDraft draft = draft_of({1}, 3);
    CHECK(add_rest(draft, drawn, 64) == 0);
}
