#include "draft/history/history_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "draft/corpus/corpus.h"
#include "draft/corpus/corpus_builder.h"
#include "draft/history/history.h"
#include "files/private_file.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// The file that a link points to.
std::string resolved(const std::string& path) {
    return std::filesystem::weakly_canonical(path).string();
}

}  // namespace

HistoryFile::HistoryFile(std::string path, int n_vocab, std::uint64_t vocabulary)
    : path_(std::move(path)), n_vocab_(n_vocab), vocabulary_(vocabulary) {}

void HistoryFile::read(History& history) const {
    try {
        const PrivateFile trial(resolved(path_));
        if (!std::filesystem::exists(path_)) return;
    } catch (const std::system_error& error) {
        throw InvalidArgument("memory_file " + path_ +
                              " cannot be written: " + error.code().message() + ".");
    }
    const Corpus corpus(path_);
    corpus.check_vocabulary(path_, vocabulary_);
    for (TokenSpan rest = corpus.tokens(); !rest.empty();) {
        const auto is_token = [this](Token token) { return token >= 0 && token < n_vocab_; };
        const TokenSpan text = rest.first(std::ranges::find_if_not(rest, is_token) - rest.begin());
        history.append(kOwner, text);
        rest = rest.subspan(std::min(text.size() + 1, rest.size()));
    }
}

void HistoryFile::write(const History& history) const {
    CorpusBuilder builder(static_cast<std::int64_t>(history.n_tokens()) + 2);
    history.each_text(kOwner, [&](TokenSpan text) {
        builder.append(text);
        builder.end_text();
    });
    PrivateFile file(resolved(path_));
    builder.write(file.path(), n_vocab_, vocabulary_);
    file.replace_target();
}

}  // namespace specllama
