#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "draft/corpus_file.h"
#include "draft/mapped_file.h"
#include "draft/match.h"
#include "specllama/types.h"

namespace specllama {

// Texts to draft from that outlast a session: a file that CorpusBuilder wrote, searched where it is
// mapped.
//
// A bucket of the index holds the places behind the same kMinMatch tokens, in the order of what
// comes before these, so that the longest match and all others of its length stand side by side: a
// suffix array (Manber and Myers, "Suffix arrays: a new method for on-line string searches", 1993),
// entered through a hash. A search looks at one bucket, and halves what is left of it step by step.
//
// Const, and safe from any thread.
class Corpus {
 public:
    // Most places with a longest match whose next tokens are counted.
    static constexpr int kMaxCandidates = 32;

    // Reads the whole file once, to check it. Throws InvalidArgument if it is no corpus, damaged,
    // or cannot be read.
    explicit Corpus(const std::string& path);

    // The longest match of the end of `text` within one of the corpus' texts, and what follows
    // there, as most places with such a match go on, token by token: at most kMaxSpecLength tokens,
    // never across the end of the text. Never allocates, nor reads outside the file, whatever has
    // become of its content since.
    Match find(TokenSpan text) const;

    const corpus_file::Header& header() const { return header_; }
    std::size_t size_bytes() const { return file_.bytes().size(); }

 private:
    using Index = std::uint32_t;  // into tokens_

    // The entries behind the longest match, and its length.
    std::span<const Index> longest(TokenSpan text, int& length) const;
    // What comes before an entry.
    TokenSpan before(Index entry) const;
    // The token at this distance from an entry; kNoToken behind the end of its text.
    Token token(Index entry, std::size_t distance) const;
    // The token that most entries have at this distance; kNoToken if none has one.
    Token most_frequent(std::span<const Index> entries, std::size_t distance) const;

    MappedFile file_;
    corpus_file::Header header_;
    TokenSpan tokens_;
    std::span<const Index> starts_;
    std::span<const Index> entries_;
};

}  // namespace specllama
