#include "files/file_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "files/private_file.h"

namespace specllama {

namespace fs = std::filesystem;

namespace {

// An incomplete file without writes for this long is abandoned.
constexpr auto kAbandoned = std::chrono::hours(1);

// Writes the content to the disk. Otherwise a file could have its name, but not its content, after
// a power failure.
void sync(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool done = file >= 0 && fsync(file) == 0;
    const int error = errno;
    if (file >= 0) close(file);
    if (!done) throw std::system_error(error, std::generic_category());
}

struct Entry {
    fs::path path;
    fs::file_time_type used;
    std::uint64_t bytes = 0;
};

}  // namespace

FileCache::FileCache(fs::path folder, std::uint64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {}

bool FileCache::writable() const {
    std::error_code error;
    fs::create_directories(folder_, error);
    return access(folder_.c_str(), W_OK | X_OK) == 0;
}

std::uint64_t FileCache::free_bytes() const {
    std::error_code error;
    const fs::space_info space = fs::space(folder_, error);
    return error ? 0 : space.available;
}

fs::path FileCache::find(const std::string& name) const {
    fs::path path = folder_ / name;
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return {};
    fs::last_write_time(path, fs::file_time_type::clock::now(), error);
    return path;
}

fs::path FileCache::add(const std::string& name,
                        const std::function<void(const std::string&)>& make) const {
    std::error_code error;
    fs::create_directories(folder_, error);
    fs::path path = folder_ / name;
    PrivateFile fresh(path.string());
    make(fresh.path());
    sync(fresh.path());
    fresh.replace_target();
    trim(path);
    return path;
}

void FileCache::remove(const std::string& name) const {
    std::error_code error;
    fs::remove(folder_ / name, error);
}

void FileCache::trim(const fs::path& newest) const {
    std::error_code error;
    std::vector<Entry> entries;
    std::uint64_t bytes = 0;
    const auto now = fs::file_time_type::clock::now();
    for (fs::directory_iterator one(folder_, error), end; !error && one != end;
         one.increment(error)) {
        std::error_code gone;
        if (!one->is_regular_file(gone)) continue;
        const Entry entry{one->path(), one->last_write_time(gone), one->file_size(gone)};
        if (gone) continue;
        const bool complete = entry.path.extension() == newest.extension();
        if (!complete && now - entry.used > kAbandoned) fs::remove(entry.path, gone);
        if (!complete) continue;
        bytes += entry.bytes;
        if (entry.path != newest) entries.push_back(entry);
    }
    std::ranges::sort(entries, {}, &Entry::used);
    for (const Entry& entry : entries) {
        if (bytes <= most_bytes_) return;
        if (fs::remove(entry.path, error)) bytes -= entry.bytes;
    }
}

}  // namespace specllama
