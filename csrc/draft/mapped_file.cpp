#include "draft/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "specllama/error.h"

namespace specllama {

MappedFile::MappedFile(const std::string& path) {
    const auto fail = [&](const std::string& why) {
        throw InvalidArgument(path + " cannot be read: " + why + ".");
    };
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) fail(std::generic_category().message(errno));
    struct stat status = {};
    const bool is_file = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    const auto size = static_cast<std::size_t>(status.st_size);
    void* start = nullptr;
    if (is_file && size > 0) start = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    const int error = errno;
    close(file);
    if (!is_file) fail("it is no file");
    if (start == MAP_FAILED) fail(std::generic_category().message(error));
    bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace specllama
