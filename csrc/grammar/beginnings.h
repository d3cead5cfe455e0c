#pragma once

#include "grammar/gbnf.h"

namespace specllama {

// How a text may begin that follows a rule is what llama.cpp follows rule by rule, all ways at
// once, when it reads a grammar and after each character.
// Throws InvalidArgument where that has no end, or none in our lifetime: a rule that begins with
// itself, at once or by way of others and of what may be empty, and one that can begin in more than
// 8192 ways.
void check_beginnings(const Gbnf& grammar);

}  // namespace specllama
