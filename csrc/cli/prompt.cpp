#include "cli/prompt.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <system_error>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include "engine/utf8.h"

namespace specllama::cli {

namespace {

namespace fs = std::filesystem;

// The head of a module, as the bundled model knows them, with something to repeat in it.
constexpr const char* kBuiltinPrompt = R"("""Points and vectors in the plane."""

import math


class Point:
    """A point in the plane."""

    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __repr__(self):
        return '%s(%r, %r)' % (self.__class__.__name__, self.x, self.y)

    def __eq__(self, other):
        if not isinstance(other, Point):
            return NotImplemented
        return self.x == other.x and self.y == other.y


class Vector:
    """A vector in the plane."""

    def __init__(self, x, y):
)";

bool is_piped() {
    struct stat status;
    return fstat(STDIN_FILENO, &status) == 0 &&
           (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode));
}

std::string read_all(std::istream& stream) {
    return {std::istreambuf_iterator<char>(stream), {}};
}

std::string read_file(const std::string& path) {
    std::error_code error;
    if (!fs::exists(path, error)) throw UsageError("There is no prompt file " + path + ".");
    if (fs::is_directory(path, error))
        throw UsageError("The prompt file " + path + " is a directory.");
    std::ifstream file(path, std::ios::binary);
    if (!file) throw UsageError("The prompt file " + path + " cannot be read.");
    return read_all(file);
}

std::string read_any(const Options& options) {
    if (options.prompt) return *options.prompt;
    if (options.file == "-" || (options.file.empty() && is_piped())) return read_all(std::cin);
    if (!options.file.empty()) return read_file(options.file);
    if (options.model.empty()) return kBuiltinPrompt;
    throw UsageError("There is no prompt; give one with -p or -f, or pipe it in.");
}

fs::path executable() {
#ifdef __APPLE__
    char path[4096];
    std::uint32_t size = sizeof(path);
    if (_NSGetExecutablePath(path, &size) == 0) return fs::canonical(path);
    return {};
#else
    std::error_code error;
    return fs::read_symlink("/proc/self/exe", error);
#endif
}

}  // namespace

std::string read_prompt(const Options& options) {
    std::string prompt = read_any(options);
    if (prompt.empty()) throw UsageError("The prompt is empty; give at least one character.");
    if (const auto at = find_invalid_utf8(prompt); at != std::string::npos)
        throw UsageError("The prompt is not valid UTF-8 (at byte " + std::to_string(at) + ").");
    return prompt;
}

std::string bundled_model() {
    return (executable().parent_path().parent_path() / "models" / "target-q8_0.gguf").string();
}

}  // namespace specllama::cli
