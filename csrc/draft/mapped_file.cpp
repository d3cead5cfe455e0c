#include "draft/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "specllama/error.h"
#include "system/regular_file.h"

namespace specllama {

MappedFile::MappedFile(const std::string& path) try {
    const RegularFile file(path);
    if (file.size() == 0) return;
    void* start = mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.descriptor(), 0);
    if (start == MAP_FAILED) throw std::system_error(errno, std::generic_category());
    bytes_ = {static_cast<const std::byte*>(start), file.size()};
} catch (const std::system_error& error) {
    const bool is_other = error.code() == std::errc::invalid_argument;
    throw InvalidArgument(
        path + " cannot be read: " + (is_other ? "it is no file" : error.code().message()) + ".");
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace specllama
