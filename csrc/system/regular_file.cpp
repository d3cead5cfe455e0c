#include "system/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace specllama {

RegularFile::RegularFile(const std::string& path)
    : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    const auto fail = [](int code) { throw std::system_error(code, std::generic_category()); };
    if (descriptor_ < 0) fail(errno);
    struct stat status = {};
    const int error = fstat(descriptor_, &status) != 0 ? errno : 0;
    if (error == 0 && S_ISREG(status.st_mode)) {
        size_ = static_cast<std::size_t>(status.st_size);
        return;
    }
    close(descriptor_);
    fail(error != 0 ? error : EINVAL);
}

RegularFile::~RegularFile() { close(descriptor_); }

std::string read_if_regular(const std::string& path, std::size_t most) try {
    const RegularFile file(path);
    if (file.size() > most) return "";
    std::string content(file.size(), '\0');
    std::size_t n_read = 0;
    while (n_read < content.size()) {
        const ssize_t n = read(file.descriptor(), content.data() + n_read, content.size() - n_read);
        if (n == 0 || (n < 0 && errno != EINTR)) break;  // cut short meanwhile, or not readable
        if (n > 0) n_read += static_cast<std::size_t>(n);
    }
    content.resize(n_read);
    return content;
} catch (const std::system_error&) {
    return "";
}

}  // namespace specllama
