#include "draft/corpus/file_content.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "specllama/error.h"
#include "system/regular_file.h"

namespace specllama {

std::vector<std::byte> file_content(const std::string& path) try {
    const RegularFile file(path);
    std::vector<std::byte> content(file.size());
    std::size_t n = 0;
    while (n < content.size()) {
        const ssize_t n_read = read(file.descriptor(), content.data() + n, content.size() - n);
        if (n_read < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category());
        if (n_read == 0) content.resize(n);  // it has become shorter
        if (n_read > 0) n += static_cast<std::size_t>(n_read);
    }
    return content;
} catch (const std::system_error& error) {
    const bool is_other = error.code() == std::errc::invalid_argument;
    throw InvalidArgument(path + " cannot be read: " +
                          (is_other ? "it is not a regular file" : error.code().message()) + ".");
}

}  // namespace specllama
