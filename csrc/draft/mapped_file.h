#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace specllama {

// A file's bytes, mapped into memory to be read. Processes that map the same file share its pages.
//
// Whoever changes a file replaces it by another of its name, as all of this project's writers do: a
// mapped file that is cut short in its place ends the process (SIGBUS) when it is read there.
class MappedFile {
 public:
    // Throws InvalidArgument if `path` is no file that can be read.
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::span<const std::byte> bytes() const { return bytes_; }

 private:
    std::span<const std::byte> bytes_;
};

}  // namespace specllama
