// spec-cli: generation with speculation in C++, without Python.

#ifdef __APPLE__
#include <mach-o/dyld.h>

#include <cstdint>
#else
#include <system_error>
#endif

#include <filesystem>

#include "cli/spec_cli.h"

namespace {

namespace fs = std::filesystem;

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

int main(int argc, char** argv) { return specllama::cli::spec_cli(argc, argv, executable()); }
