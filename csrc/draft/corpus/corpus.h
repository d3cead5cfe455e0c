#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "draft/corpus/corpus_file.h"
#include "draft/ngram/match.h"
#include "specllama/types.h"

namespace specllama {

// Texts to draft from, in a file that CorpusBuilder wrote. The file is read into memory and
// searched there.
//
// The index is a suffix array (Manber and Myers, "Suffix arrays: a new method for on-line string
// searches", 1993), divided into buckets by a hash. A bucket holds the positions whose kMinMatch
// preceding tokens hash to it, sorted by all tokens before them, the last token first. So all
// matches of the greatest length are neighbours, and a search is a binary search in one bucket.
//
// Immutable, and safe to use from any thread.
class Corpus {
 public:
    // If several positions have the longest match, at most this many vote on the next tokens.
    static constexpr int kMaxCandidates = 32;

    // Reads and checks the whole file. Throws InvalidArgument if it is not a corpus, is damaged, or
    // cannot be read.
    explicit Corpus(const std::string& path);

    // Finds the longest match of the end of `text` within one of the corpus' texts. If several
    // positions have it, each token of the continuation is the most frequent one there. The
    // continuation has at most kMaxSpecLength tokens and never crosses the end of its text. Never
    // allocates. Never reads outside the content, even if the file was forged.
    Match find(TokenSpan text) const;

    // Throws InvalidArgument, with the file's name, unless the corpus has this vocabulary
    // (Vocab::text_fingerprint).
    void check_vocabulary(const std::string& path, std::uint64_t vocabulary) const;

    const corpus_file::Header& header() const { return header_; }
    // All texts, with markers between them (corpus_file.h). Ids are not checked.
    TokenSpan tokens() const { return tokens_; }
    std::size_t size_bytes() const { return content_.size(); }

 private:
    using Index = std::uint32_t;  // into tokens_

    // Returns the entries after the longest match, and sets `length` to the tokens of that match.
    std::span<const Index> longest(TokenSpan text, int& length) const;
    // All tokens before an entry.
    TokenSpan before(Index entry) const;
    // The token `distance` tokens after an entry; kNoToken after the end of its text.
    Token token(Index entry, std::size_t distance) const;
    // The most frequent token at this distance; kNoToken if none has one.
    Token most_frequent(std::span<const Index> entries, std::size_t distance) const;

    std::vector<std::byte> content_;
    corpus_file::Header header_;
    TokenSpan tokens_;
    std::span<const Index> starts_;
    std::span<const Index> entries_;
};

}  // namespace specllama
