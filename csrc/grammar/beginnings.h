#pragma once

#include "grammar/gbnf.h"

namespace specllama {

// When llama.cpp reads a grammar, and after each character of a text, it expands rules, all ways at
// once, until it knows with which characters the text may go on.
// Throws InvalidArgument if that never ends or takes too long: for a rule that begins with itself
// (at once, by way of other rules, or after something that may be empty), and for a rule that can
// begin in more than 8192 ways.
void check_beginnings(const Gbnf& grammar);

}  // namespace specllama
