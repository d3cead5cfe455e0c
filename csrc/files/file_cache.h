#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace specllama {

// Large files that were made once and can be made again, in a folder of their own, which need not
// exist. Several processes may use it at once: a file is there whole or not at all, and if two make
// the same one, the later takes the place of the earlier. One that is in use elsewhere may be
// dropped: it then lives on until it is closed there.
class FileCache {
 public:
    // most_bytes: of all files together, but the newest one always stays.
    FileCache(std::filesystem::path folder, std::uint64_t most_bytes);

    const std::filesystem::path& folder() const { return folder_; }
    // Whether files can be made there, as far as that shows; creates the folder.
    bool writable() const;
    // Bytes that are free on its disk; 0: not known.
    std::uint64_t free_bytes() const;

    // The path of a file, which counts as used now; empty: there is none of this name.
    std::filesystem::path find(const std::string& name) const;
    // Calls make(path) with the path of an empty file; what it wrote there becomes the file of this
    // name. Then those unused for longest are dropped until all fit, and what a process left that
    // was killed meanwhile. Throws std::system_error, and what `make` throws.
    std::filesystem::path add(const std::string& name,
                              const std::function<void(const std::string&)>& make) const;
    void remove(const std::string& name) const;

 private:
    void trim(const std::filesystem::path& newest) const;

    std::filesystem::path folder_;
    std::uint64_t most_bytes_;
};

}  // namespace specllama
