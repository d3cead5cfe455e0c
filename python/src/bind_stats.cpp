#include <functional>

#include <pybind11/native_enum.h>

#include "bind.h"
#include "specllama/stats_fields.h"

namespace specllama {

namespace {

// A figure as Python sees it.
template <typename Figure>
Figure to_python(const Figure& figure) {
    return figure;
}

py::dict to_python(const decltype(Stats::by_source)& by_source) {
    py::dict dict;
    for (std::size_t i = 0; i < by_source.size(); ++i)
        dict[kSourceNames[i]] = as_pair(by_source[i]);
    return dict;
}

// For the visitors: adds a read-only attribute for each figure.
template <typename Figures>
auto attributes_of(py::class_<Figures>& type) {
    return [&type](const char* name, auto figure) {
        type.def_property_readonly(name, [figure](const Figures& figures) {
            return to_python(std::invoke(figure, figures));
        });
    };
}

// The same as JSON could hold it.
template <typename Figure>
auto to_plain(const Figure& figure) {
    return to_python(figure);
}

py::dict to_plain(const Seconds& seconds) {
    py::dict dict;
    visit_seconds([&](const char* name, auto figure) { dict[name] = seconds.*figure; });
    return dict;
}

py::dict to_plain(const Stats& stats) {
    py::dict dict;
    visit_stats(
        [&](const char* name, auto figure) { dict[name] = to_plain(std::invoke(figure, stats)); });
    return dict;
}

}  // namespace

void bind_stats(py::module_& m) {
    py::native_enum<Source> sources(m, "Source", "enum.Enum", "What a draft token comes from.");
    for (std::size_t i = 0; i < kSourceNames.size(); ++i)
        sources.value(kSourceNames[i], static_cast<Source>(i));
    sources.finalize();
    py::class_<Seconds> seconds(m, "Seconds", "Time in the parts of a generation, in seconds.");
    visit_seconds(attributes_of(seconds));
    seconds.def("__repr__",
                [](const Seconds& one) { return py::str("Seconds({})").format(to_plain(one)); });
    py::class_<Stats> stats(m, "Stats", "What a generation did: counts, rates and times.");
    visit_stats(attributes_of(stats));
    stats.def("to_dict", [](const Stats& one) { return to_plain(one); })
        .def("__repr__", [](const Stats& one) {
            return py::str(
                       "Stats(prompt_tokens={}, generated_tokens={}, rounds={}, drafted={}, "
                       "accepted={}, tokens_per_round={:.2f}, tokens_per_second={:.1f})")
                .format(one.prompt_tokens, one.generated_tokens, one.rounds, one.drafted,
                        one.accepted, one.tokens_per_round(), one.tokens_per_second());
        });
}

}  // namespace specllama
