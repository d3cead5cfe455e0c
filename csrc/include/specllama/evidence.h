#pragma once

#include "specllama/source.h"

namespace specllama {

// What a drafter knows about one of its proposed tokens.
struct Evidence {
    Source source = Source::other;
    // match, corpus, history: number of tokens before this one, draft tokens included, that equal
    // those of the copied text. ngram: order of the n-gram. grammar: bytes predicted after this
    // token. Others: 0.
    int length = 0;
    // In [0, 1]. ngram: relative frequency, lowered for rare contexts. model: probability. match: 0
    // if the copied token differed from what a copy had predicted at its place, as values differ
    // between similar records; otherwise 1. grammar: 1 if the grammar allows nothing else; less if
    // it allows a few bytes and the one that came last time is drafted. other: the drafter's own
    // estimate.
    float confidence = 1;
};

}  // namespace specllama
