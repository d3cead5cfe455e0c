#pragma once

#include <cstddef>
#include <string>

namespace specllama {

// A regular file that is open to be read.
class RegularFile {
 public:
    // Opening never waits: not for the writer of a pipe, either. Throws std::system_error unless
    // `path` names a regular file, or a link to one.
    explicit RegularFile(const std::string& path);
    ~RegularFile();
    RegularFile(const RegularFile&) = delete;
    RegularFile& operator=(const RegularFile&) = delete;

    int descriptor() const { return descriptor_; }
    std::size_t size() const { return size_; }  // in bytes, when it was opened

 private:
    int descriptor_;
    std::size_t size_ = 0;
};

// The content of a regular file of `most` bytes at most; "": there is no such file, or it cannot be
// read. For files that nobody named and that are not needed.
std::string read_if_regular(const std::string& path, std::size_t most);

}  // namespace specllama
