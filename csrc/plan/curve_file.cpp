#include "plan/curve_file.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "fnv.h"
#include "system/cache_folder.h"

namespace specllama {

namespace {

namespace fs = std::filesystem;

// Named by a hash of the key; the key itself is the file's first line.
fs::path file(const std::string& key) {
    char name[32];
    std::snprintf(name, sizeof(name), "%016llx.curve", static_cast<unsigned long long>(fnv1a(key)));
    const fs::path place = cache_folder();
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
    std::ostringstream text;
    text.precision(std::numeric_limits<double>::max_digits10);
    text << key << '\n' << points.context_base << ' ' << points.context_per_token << '\n';
    for (const double seconds : points.seconds) text << seconds << '\n';
    write_cache_file(file(key), text.str());
}

}  // namespace specllama
