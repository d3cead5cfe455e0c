#pragma once

#include <string>

namespace specllama {

// A new file that takes the place of another one when it is complete. Only its user may read it.
class PrivateFile {
 public:
    // Creates an empty file of mode 0600 in the folder of `target`. If that is a link, it is the
    // link that is replaced later, never what it leads to. Throws std::system_error.
    explicit PrivateFile(const std::string& target);
    // Removes the file, unless it has replaced the target.
    ~PrivateFile();
    PrivateFile(const PrivateFile&) = delete;
    PrivateFile& operator=(const PrivateFile&) = delete;

    const std::string& path() const { return path_; }

    // A concurrent reader of the target sees either its old content or the new one, whole. Throws
    // std::system_error; the target then stays as it was.
    void replace_target();

 private:
    std::string target_;
    std::string path_;  // "": it has replaced the target
};

}  // namespace specllama
