#include "system/cache_folder.h"

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <vector>

#include "system/private_file.h"
#include "system/regular_file.h"

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

std::string read_cache_file(const fs::path& path) try {
    constexpr std::size_t kMost = std::size_t{1} << 20;
    const std::vector<std::byte> bytes = read_regular(path.string(), kMost);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
} catch (const std::system_error&) {
    return "";
}

void write_cache_file(const fs::path& path, const std::string& text) {
    if (path.empty()) return;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    try {
        PrivateFile fresh(path.string());
        std::ofstream file(fresh.path(), std::ios::binary);
        file << text;
        file.close();
        if (file) fresh.replace_target();
    } catch (const std::system_error&) {
        // Nothing is remembered then.
    }
}

}  // namespace specllama
