#include "system/cache_folder.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <system_error>
#include <thread>

namespace specllama {

namespace fs = std::filesystem;

fs::path cache_folder() {
    const auto set = [](const char* name) {
        const char* value = std::getenv(name);
        return fs::path(value == nullptr ? "" : value);
    };
    if (const fs::path own = set("SPECLLAMA_CACHE"); !own.empty()) return own;
    if (const fs::path cache = set("XDG_CACHE_HOME"); !cache.empty()) return cache / "specllama";
    const fs::path home = set("HOME");
    if (home.empty()) return {};
#ifdef __APPLE__
    return home / "Library" / "Caches" / "specllama";
#else
    return home / ".cache" / "specllama";
#endif
}

void write_cache_file(const fs::path& path, const std::string& text) {
    if (path.empty()) return;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    fs::path fresh = path;
    const std::size_t thread = std::hash<std::thread::id>()(std::this_thread::get_id());
    fresh += "." + std::to_string(getpid()) + "." + std::to_string(thread);
    {
        std::ofstream stream(fresh);
        stream << text;
        if (!stream.flush()) error = std::make_error_code(std::errc::io_error);
    }
    if (!error) fs::rename(fresh, path, error);
    if (error) fs::remove(fresh, error);
}

}  // namespace specllama
