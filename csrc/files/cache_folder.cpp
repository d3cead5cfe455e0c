#include "files/cache_folder.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <vector>

#include "files/private_file.h"
#include "files/regular_file.h"
#include "fnv.h"

namespace specllama {

namespace fs = std::filesystem;

namespace {

// The file's name is a hash of the key.
fs::path file_of(const fs::path& folder, const std::string& kind, const std::string& key) {
    if (folder.empty()) return {};
    char name[24];
    std::snprintf(name, sizeof(name), "%016llx.", static_cast<unsigned long long>(fnv1a(key)));
    return folder / (name + kind);
}

}  // namespace

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
        // The text is not stored then.
    }
}

std::string recall(const fs::path& folder, const std::string& kind, const std::string& key) {
    const std::string text = read_cache_file(file_of(folder, kind, key));
    return text.starts_with(key + '\n') ? text.substr(key.size() + 1) : "";
}

void remember(const fs::path& folder, const std::string& kind, const std::string& key,
              const std::string& text) {
    write_cache_file(file_of(folder, kind, key), key + '\n' + text);
}

}  // namespace specllama
