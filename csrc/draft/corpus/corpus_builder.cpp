#include "draft/corpus/corpus_builder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <numeric>
#include <span>
#include <system_error>
#include <utility>

#include "draft/corpus/corpus_file.h"
#include "draft/ngram/match.h"
#include "fnv.h"
#include "specllama/error.h"

namespace specllama {

namespace {

using corpus_file::Header;

struct Index {
    std::vector<std::uint32_t> starts;
    std::vector<std::uint32_t> entries;
};

// Indices of the tokens with at least kMinMatch tokens of their text before them.
std::vector<std::uint32_t> indexed(TokenSpan tokens) {
    std::vector<std::uint32_t> found;
    int n_before = 0;
    for (std::uint32_t i = 0; i < tokens.size(); ++i) {
        const bool is_token = tokens[i] != kNoToken;
        if (is_token && n_before >= kMinMatch) found.push_back(i);
        n_before = is_token ? n_before + 1 : 0;
    }
    return found;
}

Index index(TokenSpan tokens) {
    const std::vector<std::uint32_t> found = indexed(tokens);
    const std::size_t n_buckets = found.size() / corpus_file::kEntriesPerBucket + 1;
    const auto bucket = [&](std::uint32_t at) {
        return bucket_of(tokens.subspan(at - kMinMatch, kMinMatch), n_buckets);
    };
    // Counting sort by bucket.
    std::vector<std::uint32_t> starts(n_buckets + 1);
    for (const std::uint32_t at : found) ++starts[bucket(at) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<std::uint32_t> entries(found.size());
    std::vector<std::uint32_t> ends(starts.begin(), starts.end() - 1);
    for (const std::uint32_t at : found) entries[ends[bucket(at)]++] = at;

    for (std::size_t b = 0; b < n_buckets; ++b)
        std::stable_sort(entries.begin() + starts[b], entries.begin() + starts[b + 1],
                         [&](std::uint32_t one, std::uint32_t other) {
                             return backwards_less(tokens.first(one), tokens.first(other));
                         });
    return {std::move(starts), std::move(entries)};
}

}  // namespace

CorpusBuilder::CorpusBuilder(std::int64_t max_tokens)
    : max_tokens_(static_cast<std::size_t>(max_tokens)), tokens_{kNoToken} {
    const auto most = static_cast<std::int64_t>(corpus_file::kMaxTokens);
    if (max_tokens < 1 || max_tokens > most)
        throw InvalidArgument("max_tokens must be from 1 to " + std::to_string(most) + ", not " +
                              std::to_string(max_tokens) + ".");
}

void CorpusBuilder::append(TokenSpan tokens) {
    if (full()) return;
    const TokenSpan taken = tokens.first(std::min(tokens.size(), max_tokens_ - 1 - tokens_.size()));
    tokens_.insert(tokens_.end(), taken.begin(), taken.end());
}

void CorpusBuilder::end_text() {
    if (tokens_.back() == kNoToken) return;
    tokens_.push_back(kNoToken);
    ++n_texts_;
}

void CorpusBuilder::write(const std::string& path, int n_vocab, std::uint64_t vocabulary) {
    end_text();
    const auto [starts, entries] = index(tokens_);
    Header header{.magic = corpus_file::kMagic,
                  .version = corpus_file::kVersion,
                  .n_vocab = static_cast<std::uint32_t>(n_vocab),
                  .vocabulary = vocabulary,
                  .n_texts = n_texts_,
                  .n_tokens = tokens_.size(),
                  .n_buckets = starts.size() - 1,
                  .n_entries = entries.size(),
                  .content_hash = kFnvBasis,
                  .header_hash = 0};
    const std::array sections = {std::as_bytes(std::span(tokens_)),
                                 std::as_bytes(std::span(starts)),
                                 std::as_bytes(std::span(entries))};
    for (const auto& section : sections)
        header.content_hash = corpus_file::hash_words(section, header.content_hash);
    header.header_hash = header.hash();

    errno = 0;
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    for (const auto& section : sections)
        file.write(reinterpret_cast<const char*>(section.data()),
                   static_cast<std::streamsize>(section.size()));
    file.close();
    if (!file) throw std::system_error(errno == 0 ? EIO : errno, std::generic_category());
}

}  // namespace specllama
