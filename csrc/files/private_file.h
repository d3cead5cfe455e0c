#pragma once

#include <string>

namespace specllama {

// A new file that replaces another one when it is complete. Only the user may read it.
class PrivateFile {
 public:
    // Creates an empty file of mode 0600 in the folder of `target`. If `target` is a link, the link
    // itself will be replaced, not its destination. Throws std::system_error.
    explicit PrivateFile(const std::string& target);
    // Removes the file, unless it has replaced the target.
    ~PrivateFile();
    PrivateFile(const PrivateFile&) = delete;
    PrivateFile& operator=(const PrivateFile&) = delete;

    const std::string& path() const { return path_; }

    // A concurrent reader of the target sees either the complete old content or the complete new
    // one. Throws std::system_error; the target then stays unchanged.
    void replace_target();

 private:
    std::string target_;
    std::string path_;  // "": it has replaced the target
};

}  // namespace specllama
