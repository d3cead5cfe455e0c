#include "files/private_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace specllama {

namespace fs = std::filesystem;

PrivateFile::PrivateFile(const std::string& target) : target_(target), path_(target + ".XXXXXX") {
    const int file = mkstemp(path_.data());
    if (file < 0) throw std::system_error(errno, std::generic_category());
    close(file);
}

PrivateFile::~PrivateFile() {
    if (!path_.empty()) unlink(path_.c_str());
}

void PrivateFile::replace_target() {
    fs::rename(path_, target_);
    path_.clear();
}

}  // namespace specllama
