#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace specllama {

// The rules of a grammar in GBNF as llama.cpp makes them of its text: a group is a rule of its own,
// and so is what may be repeated. Of characters it has only that they are there.
struct Gbnf {
    using Symbol = std::int32_t;  // a rule's number, or
    static constexpr Symbol kCharacter = -1;

    using Sequence = std::vector<Symbol>;

    struct Rule {
        std::string_view name;               // of a rule without one: its owner's
        std::vector<Sequence> alternatives;  // none: it is only named, or could not be read
    };

    std::vector<Rule> rules;
};

// The result has parts of `text`, which must outlive it. What is no GBNF ends it: llama.cpp's
// parser tells why.
// Throws InvalidArgument where that parser would end the process or take all memory: more than 64
// groups in each other, more than 4096 rules and repetitions, more than 262144 characters in the
// copies of what is repeated, and a repetition whose least is above 2000 or above its most.
Gbnf parse_gbnf(std::string_view text);

}  // namespace specllama
