#include <tuple>
#include <vector>

#include <pybind11/native_enum.h>

#include "bind.h"
#include "specllama/trace.h"

namespace specllama {

namespace {

using DraftedState = std::tuple<Token, Source, int, float, int, bool>;
using RoundState = std::tuple<int, std::vector<DraftedToken>, int, Token, std::vector<Token>,
                              double, double, double, double>;

}  // namespace

void bind_trace(py::module_& m) {
    py::class_<DraftedToken>(m, "DraftedToken", "A token that was proposed and verified.")
        .def_readonly("token", &DraftedToken::token)
        .def_property_readonly("drafter",
                               [](const DraftedToken& self) { return name(self.source); })
        .def_readonly("length", &DraftedToken::length)
        .def_readonly("confidence", &DraftedToken::confidence)
        .def_property_readonly("parent",
                               [](const DraftedToken& self) {
                                   return self.parent < 0 ? py::object(py::none())
                                                          : py::int_(self.parent);
                               })
        .def_readonly("accepted", &DraftedToken::accepted)
        .def(py::pickle(
            [](const DraftedToken& self) {
                return DraftedState(self.token, self.source, self.length, self.confidence,
                                    self.parent, self.accepted);
            },
            [](const DraftedState& state) { return std::make_from_tuple<DraftedToken>(state); }))
        .def("__repr__", [](const py::object& self) {
            return py::str("DraftedToken(token={}, drafter={!r}, length={}, confidence={:.3f})")
                .format(self.attr("token"), self.attr("drafter"), self.attr("length"),
                        self.attr("confidence"));
        });
    py::class_<RoundTrace>(m, "RoundTrace", "The record of one round.")
        .def_readonly("position", &RoundTrace::position)
        .def_readonly("draft", &RoundTrace::draft)
        .def_readonly("accepted", &RoundTrace::accepted)
        .def_property_readonly("next",
                               [](const RoundTrace& self) {
                                   return self.next == kNoToken ? py::object(py::none())
                                                                : py::int_(self.next);
                               })
        .def_readonly("forced", &RoundTrace::forced)
        .def_readonly("draft_seconds", &RoundTrace::draft_seconds)
        .def_readonly("decode_seconds", &RoundTrace::decode_seconds)
        .def_readonly("expected_tokens", &RoundTrace::expected_tokens)
        .def_readonly("expected_seconds", &RoundTrace::expected_seconds)
        .def(py::pickle(
            [](const RoundTrace& self) {
                return RoundState(self.position, self.draft, self.accepted, self.next, self.forced,
                                  self.draft_seconds, self.decode_seconds, self.expected_tokens,
                                  self.expected_seconds);
            },
            [](const RoundState& state) { return std::make_from_tuple<RoundTrace>(state); }))
        .def("__repr__", [](const py::object& self) {
            return py::str("RoundTrace(position={}, draft={}, accepted={}, next={})")
                .format(self.attr("position"), self.attr("draft"), self.attr("accepted"),
                        self.attr("next"));
        });
}

}  // namespace specllama
