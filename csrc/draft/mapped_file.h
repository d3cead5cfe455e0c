#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace specllama {

// A file's bytes, mapped into memory to be read. Processes that map the same file share its pages.
//
// To change a file, replace it by a new one of the same name, as all of this project's writers do.
// If a mapped file is cut short in place, reading past its new end kills the process (SIGBUS).
class MappedFile {
 public:
    // Throws InvalidArgument if `path` is not a readable regular file.
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::span<const std::byte> bytes() const { return bytes_; }

 private:
    std::span<const std::byte> bytes_;
};

}  // namespace specllama
