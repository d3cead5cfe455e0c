#include "bind.h"
#include "constraint/llguidance.h"

namespace specllama {

void bind_llguidance(py::module_& m) {
    m.def("set_llguidance_path", &set_llguidance_path, py::arg("path"));
}

}  // namespace specllama
