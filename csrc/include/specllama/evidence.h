#pragma once

#include "specllama/source.h"

namespace specllama {

// What a drafter knows about one token it proposes.
struct Evidence {
    Source source = Source::other;
    // match, corpus, history: how many tokens before this one, those of this draft included, agree
    // with the text copied from. ngram: order of the n-gram. grammar: bytes foreseen after this
    // token. Otherwise 0.
    int length = 0;
    // In [0, 1]. ngram: relative frequency, lowered for contexts that were rarely seen. model:
    // probability. match: 0 if the copied token itself differed from what a copy had predicted
    // there, as values differ between similar records; otherwise 1. grammar: 1 if nothing else may
    // come; less if a few bytes may, and the one that came last time is drafted. other: the
    // drafter's own estimate.
    float confidence = 1;
};

}  // namespace specllama
