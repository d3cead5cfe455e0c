#pragma once

#include <cstdint>
#include <string>

namespace specllama {

class History;

// A corpus file that keeps one owner's history between sessions.
class HistoryFile {
 public:
    static constexpr int kOwner = 0;

    // n_vocab, vocabulary: as for CorpusBuilder::write.
    HistoryFile(std::string path, int n_vocab, std::uint64_t vocabulary);

    // Appends the file's texts to `history`, if the file exists. Throws InvalidArgument if it is
    // not a corpus of this vocabulary, or cannot be written.
    void read(History& history) const;

    // Replaces the file atomically. Throws std::system_error; the file then stays unchanged.
    void write(const History& history) const;

    const std::string& path() const { return path_; }

 private:
    std::string path_;
    int n_vocab_;
    std::uint64_t vocabulary_;
};

}  // namespace specllama
