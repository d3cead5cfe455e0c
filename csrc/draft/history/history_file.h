#pragma once

#include <cstdint>
#include <string>

namespace specllama {

class History;

// A file that keeps one owner's history from one session to the next: a corpus file, which
// anything that reads a corpus can use.
class HistoryFile {
 public:
    static constexpr int kOwner = 0;

    // n_vocab, vocabulary: as for CorpusBuilder::write.
    HistoryFile(std::string path, int n_vocab, std::uint64_t vocabulary);

    // Appends the texts of the file, if it exists. Throws InvalidArgument if the file is not a
    // corpus of this vocabulary, or cannot be written.
    void read(History& history) const;

    // Replaces the file as a whole. Throws std::system_error; the file then stays as it was.
    void write(const History& history) const;

    const std::string& path() const { return path_; }

 private:
    std::string path_;
    int n_vocab_;
    std::uint64_t vocabulary_;
};

}  // namespace specllama
