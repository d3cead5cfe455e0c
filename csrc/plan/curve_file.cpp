#include "plan/curve_file.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <system_error>
#include <thread>

#include "fnv.h"

namespace specllama {

namespace {

namespace fs = std::filesystem;

fs::path folder() {
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

// Named by a hash of the key; the key itself is the file's first line.
fs::path file(const std::string& key) {
    char name[32];
    std::snprintf(name, sizeof(name), "%016llx.curve", static_cast<unsigned long long>(fnv1a(key)));
    const fs::path place = folder();
    return place.empty() ? place : place / name;
}

}  // namespace

std::optional<CurvePoints> load_curve(const std::string& key) {
    std::ifstream stream(file(key));
    std::string line;
    if (!std::getline(stream, line) || line != key) return {};
    CurvePoints points;
    if (!(stream >> points.context_base >> points.context_per_token)) return {};
    for (double seconds = 0;
         stream >> seconds && std::ssize(points.seconds) < CostCurve::kMaxTokens;)
        points.seconds.push_back(seconds);
    if (points.seconds.empty()) return {};
    return points;
}

void save_curve(const std::string& key, const CurvePoints& points) {
    const fs::path path = file(key);
    if (path.empty()) return;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    fs::path fresh = path;
    const std::size_t thread = std::hash<std::thread::id>()(std::this_thread::get_id());
    fresh += "." + std::to_string(getpid()) + "." + std::to_string(thread);
    {
        std::ofstream stream(fresh);
        stream.precision(std::numeric_limits<double>::max_digits10);
        stream << key << '\n' << points.context_base << ' ' << points.context_per_token << '\n';
        for (const double seconds : points.seconds) stream << seconds << '\n';
        if (!stream) error = std::make_error_code(std::errc::io_error);
    }
    if (!error) fs::rename(fresh, path, error);
    if (error) fs::remove(fresh, error);
}

}  // namespace specllama
