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

// Texts to draft from that outlast a session: a file written by CorpusBuilder, read into memory
// and searched there.
//
// The index is a suffix array (Manber and Myers, "Suffix arrays: a new method for on-line string
// searches", 1993), entered through a hash. A bucket holds the places whose kMinMatch preceding
// tokens hash to it, sorted by all tokens before them, the last token first. So the longest match
// and all others of its length are neighbours, and a search is a binary search in one bucket.
//
// Const, and safe from any thread.
class Corpus {
 public:
    // When several places share the longest match, at most this many vote on the next tokens.
    static constexpr int kMaxCandidates = 32;

    // Reads the whole file once, to check it. Throws InvalidArgument if it is no corpus, damaged,
    // or cannot be read.
    explicit Corpus(const std::string& path);

    // Finds the longest match of the end of `text` within one of the corpus' texts. If several
    // places have it, each token of the continuation is the one that most of them have. The
    // continuation has at most kMaxSpecLength tokens and never crosses the end of its text. Never
    // allocates, and never reads outside the content, even if that was forged.
    Match find(TokenSpan text) const;

    // Throws InvalidArgument, and names the file, unless the corpus is of this vocabulary
    // (Vocab::text_fingerprint).
    void check_vocabulary(const std::string& path, std::uint64_t vocabulary) const;

    const corpus_file::Header& header() const { return header_; }
    // All texts, with markers between them: see corpus_file.h. Ids may be any.
    TokenSpan tokens() const { return tokens_; }
    std::size_t size_bytes() const { return content_.size(); }

 private:
    using Index = std::uint32_t;  // into tokens_

    // Returns the entries that follow the longest match; `length`: the tokens of that match.
    std::span<const Index> longest(TokenSpan text, int& length) const;
    // All tokens before an entry.
    TokenSpan before(Index entry) const;
    // The token `distance` places after an entry; kNoToken where its text ends.
    Token token(Index entry, std::size_t distance) const;
    // The token that most entries have at this distance; kNoToken if none has one.
    Token most_frequent(std::span<const Index> entries, std::size_t distance) const;

    std::vector<std::byte> content_;
    corpus_file::Header header_;
    TokenSpan tokens_;
    std::span<const Index> starts_;
    std::span<const Index> entries_;
};

}  // namespace specllama
