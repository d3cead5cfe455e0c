#include <string_view>

#include "bind.h"
#include "grammar/beginnings.h"
#include "grammar/gbnf.h"
#include "specllama/error.h"

namespace specllama {

namespace {

bool is_sound_grammar(std::string_view gbnf) {
    try {
        const Gbnf grammar = parse_gbnf(gbnf);
        check_beginnings(grammar);
        return grammar.whole;
    } catch (const InvalidArgument&) {
        return false;
    }
}

}  // namespace

void bind_grammar(py::module_& m) {
    m.def("is_sound_grammar", &is_sound_grammar, py::call_guard<py::gil_scoped_release>(),
          py::arg("gbnf"));
}

}  // namespace specllama
