#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <optional>

#include "bind.h"
#include "system/cache_folder.h"

namespace specllama {

void bind_cache_folder(py::module_& m) {
    m.def(
        "cache_folder",
        []() -> std::optional<std::filesystem::path> {
            std::filesystem::path folder = cache_folder();
            if (folder.empty()) return std::nullopt;
            return folder;
        },
        "Return where things are remembered, or None.");
}

}  // namespace specllama
