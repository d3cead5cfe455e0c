#include "draft/corpus/corpus.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <system_error>

#include "files/regular_file.h"
#include "fnv.h"
#include "specllama/error.h"

namespace specllama {

namespace {

using corpus_file::Header;

std::vector<std::byte> content_of(const std::string& path) try {
    return read_regular(path, std::numeric_limits<std::size_t>::max());
} catch (const std::system_error& error) {
    const bool is_other = error.code() == std::errc::invalid_argument;
    throw InvalidArgument(path + " cannot be read: " +
                          (is_other ? "it is not a regular file" : error.code().message()) + ".");
}

Header checked(const std::string& path, std::span<const std::byte> bytes) {
    const auto refuse = [&](const std::string& why) {
        throw InvalidArgument(path + " cannot be used for drafts: it is " + why + ".");
    };
    Header header;
    if (bytes.size() >= sizeof(header)) std::memcpy(&header, bytes.data(), sizeof(header));
    if (bytes.size() < sizeof(header) || header.magic != corpus_file::kMagic)
        refuse("not a corpus of `specllama corpus build`");
    if (header.version != corpus_file::kVersion)
        refuse("a corpus of another version of specllama; build it again");
    const bool holds =
        header.header_hash == header.hash() &&
        std::max({header.n_tokens, header.n_buckets, header.n_entries}) <= corpus_file::kMaxTokens;
    const std::size_t n_words =
        holds ? header.n_tokens + header.n_buckets + 1 + header.n_entries : 0;
    if (!holds || bytes.size() != sizeof(header) + n_words * sizeof(Token) ||
        header.content_hash != corpus_file::hash_words(bytes.subspan(sizeof(header))))
        refuse("damaged; build it again");
    return header;
}

}  // namespace

Corpus::Corpus(const std::string& path)
    : content_(content_of(path)), header_(checked(path, content_)) {
    const std::byte* at = content_.data() + sizeof(Header);
    const auto take = [&at]<typename Word>(std::span<const Word>& words, std::size_t n) {
        words = {reinterpret_cast<const Word*>(at), n};
        at += words.size_bytes();
    };
    take(tokens_, header_.n_tokens);
    take(starts_, header_.n_buckets + 1);
    take(entries_, header_.n_entries);
}

void Corpus::check_vocabulary(const std::string& path, std::uint64_t vocabulary) const {
    if (header_.vocabulary != vocabulary)
        throw InvalidArgument(
            path +
            " cannot be used for drafts: it was built for another vocabulary than "
            "this model's; build one with this model.");
}

TokenSpan Corpus::before(Index entry) const {
    return tokens_.first(std::min<std::size_t>(entry, tokens_.size()));
}

Token Corpus::token(Index entry, std::size_t distance) const {
    const std::size_t at = entry + distance;
    if (at >= tokens_.size()) return kNoToken;
    return static_cast<std::uint32_t>(tokens_[at]) < header_.n_vocab ? tokens_[at] : kNoToken;
}

Token Corpus::most_frequent(std::span<const Index> entries, std::size_t distance) const {
    Token best = kNoToken;
    std::ptrdiff_t most = 0;
    for (const Index entry : entries) {
        const Token next = token(entry, distance);
        if (next == kNoToken) continue;
        const auto count =
            std::ranges::count(entries, next, [&](Index other) { return token(other, distance); });
        if (count > most) {
            best = next;
            most = count;
        }
        if (2 * most >= std::ssize(entries)) break;  // no other token can have more
    }
    return best;
}

std::span<const Corpus::Index> Corpus::longest(TokenSpan text, int& length) const {
    if (text.size() < kMinMatch || header_.n_buckets == 0) return {};
    const std::size_t bucket = bucket_of(text.last(kMinMatch), header_.n_buckets);
    const Index first = starts_[bucket];
    const Index last = starts_[bucket + 1];
    if (first >= last || last > entries_.size()) return {};
    const std::span<const Index> entries = entries_.subspan(first, last - first);

    const auto agree = [&](Index entry) { return common_suffix(before(entry), text); };
    const auto here = std::ranges::partition_point(
        entries, [&](Index entry) { return backwards_less(before(entry), text); });
    length = here == entries.end() ? 0 : agree(*here);
    if (here != entries.begin()) length = std::max(length, agree(here[-1]));
    if (length < kMinMatch) return {};
    const auto begin = std::partition_point(entries.begin(), here,
                                            [&](Index entry) { return agree(entry) < length; });
    const auto end = std::partition_point(here, entries.end(),
                                          [&](Index entry) { return agree(entry) >= length; });
    return {begin, end};
}

Match Corpus::find(TokenSpan text) const {
    Match match;
    const std::span<const Index> entries = longest(text, match.length);
    if (entries.empty()) return {};

    // If there are many, take candidates at even distances.
    std::array<Index, kMaxCandidates> candidates;
    const std::size_t n_most = std::min(entries.size(), candidates.size());
    for (std::size_t i = 0; i < n_most; ++i) candidates[i] = entries[i * entries.size() / n_most];
    auto rest = std::span(candidates).first(n_most);
    std::size_t n = 0;
    for (; n < kMaxSpecLength; ++n) {
        const Token next = most_frequent(rest, n);
        if (next == kNoToken) break;
        const auto gone =
            std::ranges::remove_if(rest, [&](Index entry) { return token(entry, n) != next; });
        rest = rest.first(rest.size() - gone.size());
    }
    if (n == 0) return {};
    match.continuation = tokens_.subspan(rest[0], n);
    return match;
}

}  // namespace specllama
