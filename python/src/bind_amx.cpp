#include <string>
#include <utility>
#include <vector>

#include "bind.h"
#include "device/amx.h"

namespace specllama {

void bind_amx(py::module_& m) {
    m.def(
        "try_amx",
        [](std::vector<std::string> command, std::string expected, const std::string& libraries,
           double seconds, std::string key, const std::string& folder) {
            const AmxTrial trial{std::move(command), std::move(expected),
                                 libraries,          seconds,
                                 std::move(key),     folder};
            const py::gil_scoped_release release;
            std::string notice;
            const bool works = trial.works(notice);
            return std::pair(works, notice);
        },
        py::kw_only(), py::arg("command"), py::arg("expected"), py::arg("libraries"),
        py::arg("seconds"), py::arg("key"), py::arg("folder"),
        "Try whether AMX works, as sessions do, by a program of one's own.");
    m.def("has_amx", &has_amx, "Whether llama.cpp has AMX kernels, and the processor AMX.");
}

}  // namespace specllama
