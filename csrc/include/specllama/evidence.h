#pragma once

#include "specllama/source.h"

namespace specllama {

// What a drafter knows about one token it proposes.
struct Evidence {
    Source source = Source::other;
    // match, corpus: tokens before this one that agree with the text copied from, this draft's own
    // included; ngram: order of the n-gram; grammar: bytes foreseen behind this token;
    // else 0.
    int length = 0;
    // ngram: relative frequency, less where the context is rare; model: probability; match: 0 where
    // the token copied was itself another than a copy had said, as values are in records that are
    // alike, else 1; grammar: 1 where nothing else may come, less where few bytes may, and the one
    // that came last time is drafted; other: the drafter's own estimate; in [0, 1].
    float confidence = 1;
};

}  // namespace specllama
