#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace specllama {

// A folder for large files that can be recreated. The folder need not exist. Several processes may
// use it at the same time: a file is either complete or does not exist, and if two processes create
// the same one, the later one replaces the earlier one. A file in use by another process may be
// removed: it then remains readable there until it is closed.
class FileCache {
 public:
    // most_bytes: limit for all files together, but the newest one always stays.
    FileCache(std::filesystem::path folder, std::uint64_t most_bytes);

    const std::filesystem::path& folder() const { return folder_; }
    // Whether files can probably be created there. Creates the folder.
    bool writable() const;
    // Free bytes on its disk; 0: unknown.
    std::uint64_t free_bytes() const;

    // The path of a file, which is marked as used; empty: no file of this name.
    std::filesystem::path find(const std::string& name) const;
    // Calls make(path) with the path of an empty file, and then gives that file this name. Then
    // removes the least recently used files until all fit, and incomplete files of killed
    // processes. Throws std::system_error, and the exceptions of `make`.
    std::filesystem::path add(const std::string& name,
                              const std::function<void(const std::string&)>& make) const;
    void remove(const std::string& name) const;

 private:
    void trim(const std::filesystem::path& newest) const;

    std::filesystem::path folder_;
    std::uint64_t most_bytes_;
};

}  // namespace specllama
