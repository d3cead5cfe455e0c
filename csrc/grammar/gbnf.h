#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace specllama {

// The rules of a GBNF grammar, as llama.cpp makes them from its text: each group and each
// repetition is a rule of its own. Of a character, only the fact that there is one is kept.
struct Gbnf {
    using Symbol = std::int32_t;  // a rule's index, or kCharacter
    static constexpr Symbol kCharacter = -1;

    using Sequence = std::vector<Symbol>;

    struct Rule {
        std::string_view name;               // of a group or repetition: its owner's name
        std::vector<Sequence> alternatives;  // none: the rule is only named, or could not be read
    };

    std::vector<Rule> rules;
    // Whether the text could be read to its end and defines all rules that it names. If so, hardly
    // anything is left that llama.cpp's parser would refuse.
    bool whole = false;
};

// The result refers to parts of `text`, which must outlive it. Parsing ends without an error at
// whatever is not GBNF: llama.cpp's parser tells why.
// Throws InvalidArgument where that parser would end the process or take all memory: for more than
// 64 groups inside each other, more than 4096 rules and repetitions, more than 262144 symbols in
// the copies of repeated literals and character sets, and a repetition whose least number is above
// 2000 or above its most.
Gbnf parse_gbnf(std::string_view text);

}  // namespace specllama
