#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pybind11/native_enum.h>

#include "bind.h"
#include "specllama/stats_fields.h"

namespace specllama {

namespace {

// A figure for Python.
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

// A function for visit_stats and visit_seconds that adds a read-only attribute for each figure.
template <typename Figures>
auto attributes_of(py::class_<Figures>& type) {
    return [&type](const char* name, auto figure) {
        type.def_property_readonly(name, [figure](const Figures& figures) {
            return to_python(std::invoke(figure, figures));
        });
    };
}

// A figure in types that JSON supports.
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

Seconds seconds_from(const py::dict& state) {
    Seconds seconds;
    visit_seconds([&](const char* name, auto figure) {
        seconds.*figure = state[name].template cast<double>();
    });
    return seconds;
}

// The data for a copy of the statistics: the figures and the other fields.
py::dict state_of(const Stats& stats) {
    py::dict state = to_plain(stats);
    state["prefill_generated_tokens"] = stats.prefill_generated_tokens;
    return state;
}

Stats from_state(const py::dict& state) {
    Stats stats;
    visit_stats([&](const char* name, auto figure) {
        if constexpr (std::is_member_object_pointer_v<decltype(figure)>) {
            using Figure = std::remove_cvref_t<decltype(stats.*figure)>;
            if constexpr (std::is_same_v<Figure, Seconds>) {
                stats.*figure = seconds_from(state[name]);
            } else if constexpr (std::is_same_v<Figure, decltype(Stats::by_source)>) {
                for (std::size_t i = 0; i < kSourceNames.size(); ++i) {
                    const auto pair = state[name][kSourceNames[i]];
                    stats.by_source[i] = {pair[py::int_(0)].template cast<int>(),
                                          pair[py::int_(1)].template cast<int>()};
                }
            } else {
                stats.*figure = state[name].template cast<Figure>();
            }
        }
    });
    for (const auto& [drafted, accepted] :
         state["by_round"].cast<std::vector<std::pair<int, int>>>())
        stats.by_round.push_back({drafted, accepted});
    stats.prefill_generated_tokens = state["prefill_generated_tokens"].cast<int>();
    return stats;
}

}  // namespace

void bind_stats(py::module_& m) {
    py::native_enum<Source> sources(m, "Source", "enum.Enum", "The source of a draft token.");
    for (std::size_t i = 0; i < kSourceNames.size(); ++i)
        sources.value(kSourceNames[i], static_cast<Source>(i));
    sources.finalize();
    py::class_<Seconds> seconds(m, "Seconds", "Time in the parts of a generation, in seconds.");
    visit_seconds(attributes_of(seconds));
    seconds
        .def("__repr__",
             [](const Seconds& one) { return py::str("Seconds({})").format(to_plain(one)); })
        .def(py::pickle([](const Seconds& one) { return to_plain(one); }, &seconds_from));
    py::class_<Stats> stats(m, "Stats", "Statistics of a generation: counts, rates and times.");
    visit_stats(attributes_of(stats));
    stats.def("to_dict", [](const Stats& one) { return to_plain(one); })
        .def(py::pickle(&state_of, &from_state))
        .def("__repr__", [](const Stats& one) {
            return py::str(
                       "Stats(prompt_tokens={}, generated_tokens={}, rounds={}, drafted={}, "
                       "accepted={}, tokens_per_round={:.2f}, tokens_per_second={:.1f})")
                .format(one.prompt_tokens, one.generated_tokens, one.rounds, one.drafted,
                        one.accepted, one.tokens_per_round(), one.tokens_per_second());
        });
}

}  // namespace specllama
