#include <string>
#include <vector>

#include "bind.h"
#include "cli/flags.h"
#include "cli/spec_cli.h"

namespace specllama {

void bind_cli(py::module_& m) {
    m.def(
        "spec_cli",
        [](const std::vector<std::string>& arguments) {
            std::vector<const char*> argv;
            for (const std::string& one : arguments) argv.push_back(one.c_str());
            const py::gil_scoped_release release;
            return cli::spec_cli(static_cast<int>(argv.size()), argv.data(), arguments.at(0));
        },
        py::arg("arguments"));
    m.def("spec_cli_flags", [] {
        py::dict takes_value;
        for (const cli::Flag& flag : cli::flags())
            for (const std::string& name : flag.names)
                takes_value[py::str(name)] = !flag.value.empty();
        return takes_value;
    });
}

}  // namespace specllama
