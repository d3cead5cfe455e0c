#include "files/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace specllama {

namespace {

void check(bool good, int code) {
    if (!good) throw std::system_error(code, std::generic_category());
}

class Descriptor {
 public:
    explicit Descriptor(const std::string& path)
        : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        check(descriptor_ >= 0, errno);
    }
    ~Descriptor() { close(descriptor_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    int get() const { return descriptor_; }

 private:
    int descriptor_;
};

}  // namespace

std::vector<std::byte> read_regular(const std::string& path, std::size_t most) {
    const Descriptor file(path);
    struct stat status = {};
    check(fstat(file.get(), &status) == 0, errno);
    check(S_ISREG(status.st_mode), EINVAL);
    const auto size = static_cast<std::size_t>(status.st_size);
    check(size <= most, EFBIG);
    std::vector<std::byte> content(size);
    std::size_t n = 0;
    while (n < content.size()) {
        const ssize_t n_read = read(file.get(), content.data() + n, content.size() - n);
        check(n_read >= 0 || errno == EINTR, errno);
        if (n_read == 0) content.resize(n);
        if (n_read > 0) n += static_cast<std::size_t>(n_read);
    }
    return content;
}

}  // namespace specllama
