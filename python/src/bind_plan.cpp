#include <functional>
#include <utility>
#include <vector>

#include <pybind11/functional.h>
#include <pybind11/native_enum.h>

#include "bind.h"
#include "plan/batch_share.h"
#include "plan/planner.h"
#include "specllama/error.h"

namespace specllama {

namespace {

void check_width(int n) {
    if (n < 1 || n > CostCurve::kMaxTokens)
        throw InvalidArgument("A width is from 1 to " + std::to_string(CostCurve::kMaxTokens) +
                              ", not " + std::to_string(n) + ".");
}

Choice choose(Planner& planner, const Situation& situation, const Phase& phase,
              const std::vector<std::vector<Evidence>>& drafts) {
    const std::vector<EvidenceSpan> spans(drafts.begin(), drafts.end());
    return planner.choose(situation, phase, spans);
}

void bind_cost_curve(py::module_& m) {
    py::class_<CurvePoints>(m, "CurvePoints", "A cost curve as plain numbers.")
        .def(py::init<std::vector<double>, double, double>(), py::arg("seconds"),
             py::arg("context_base") = 0.0, py::arg("context_per_token") = 0.0)
        .def_readonly("seconds", &CurvePoints::seconds)
        .def_readonly("context_base", &CurvePoints::context_base)
        .def_readonly("context_per_token", &CurvePoints::context_per_token);
    py::class_<CostCurve>(m, "CostCurve", "The seconds of a decode of n tokens, as learned so far.")
        .def(py::init())
        .def("observe", &CostCurve::observe, py::arg("n"), py::arg("n_context"), py::arg("seconds"))
        .def("seconds", &CostCurve::seconds, py::arg("n"), py::arg("n_context") = 0)
        .def(
            "doubt",
            [](const CostCurve& curve, int n, int m_) {
                check_width(n);
                check_width(m_);
                return curve.doubt(n, m_);
            },
            py::arg("n"), py::arg("m") = 1)
        .def("next_probe", &CostCurve::next_probe, py::arg("n_max"))
        .def("points", &CostCurve::points)
        .def("restore", &CostCurve::restore, py::arg("points"));
}

void bind_batch_share(py::module_& m) {
    py::class_<Share>(m, "Share", "A sequence that has a part in a decode.")
        .def(py::init([](std::vector<double> tokens, int n_pending, bool all, int place) {
                 if (tokens.empty())
                     throw InvalidArgument("tokens must begin with those of no draft.");
                 return Share{n_pending, std::move(tokens), all, place};
             }),
             py::arg("tokens"), py::kw_only(), py::arg("n_pending") = 1, py::arg("all") = false,
             py::arg("place") = 0);
    m.def(
        "share_batch",
        [](const std::vector<Share>& shares, const std::function<double(int)>& seconds,
           double spent, bool alike) {
            BatchShare batch;
            batch.settle(shares, spent, alike, seconds);
            return batch.lengths();
        },
        py::arg("shares"), py::arg("seconds"), py::kw_only(), py::arg("spent") = 0.0,
        py::arg("alike") = false);
}

}  // namespace

void bind_plan(py::module_& m) {
    bind_cost_curve(m);
    bind_batch_share(m);
    py::native_enum<Source>(m, "Source", "enum.Enum", "What a draft token comes from.")
        .value("match", Source::match)
        .value("corpus", Source::corpus)
        .value("ngram", Source::ngram)
        .value("model", Source::model)
        .value("other", Source::other)
        .finalize();
    py::class_<Evidence>(m, "Evidence", "What a drafter knows about one token it proposes.")
        .def(py::init<Source, int, float>(), py::arg("source"), py::arg("length") = 0,
             py::arg("confidence") = 1.0F)
        .def_readonly("source", &Evidence::source)
        .def_readonly("length", &Evidence::length)
        .def_readonly("confidence", &Evidence::confidence);
    py::class_<Phase>(m, "Phase", "What is known of the phase that one request's text is in.");
    py::class_<Situation>(m, "Situation", "What a planner needs to know of a round beforehand.")
        .def(py::init<int, int, int, double, double>(), py::kw_only(), py::arg("n_tokens"),
             py::arg("n_pending") = 1, py::arg("max_draft") = kMaxSpecLength,
             py::arg("overhead") = 0.0, py::arg("spent") = 0.0);
    py::class_<Choice>(m, "Choice", "What a round should do.")
        .def_readonly("draft", &Choice::draft)
        .def_readonly("n_draft", &Choice::n_draft)
        .def_readonly("tokens", &Choice::tokens)
        .def_readonly("seconds", &Choice::seconds)
        .def_readonly("saved", &Choice::saved)
        .def_readonly("probe", &Choice::probe);
    py::class_<Planner>(m, "Planner", "Decides how many tokens of which draft are verified.")
        .def(py::init())
        .def("begin", &Planner::begin, py::arg("temperature") = 0.0, py::arg("n_prompt") = 0)
        .def("choose", &choose, py::arg("situation"), py::arg("phase"), py::arg("drafts"))
        .def(
            "another",
            [](Planner& planner, const Situation& situation, const Phase& phase,
               const std::vector<Evidence>& draft, const Choice& otherwise) {
                return planner.another(situation, phase, draft, otherwise);
            },
            py::arg("situation"), py::arg("phase"), py::arg("draft"), py::arg("otherwise"))
        .def(
            "observe",
            [](Planner& planner, Phase& phase, int n_tokens, const std::vector<Evidence>& draft,
               int n_right,
               int n_judged) { planner.observe(phase, n_tokens, draft, n_right, n_judged); },
            py::arg("phase"), py::arg("n_tokens"), py::arg("draft"), py::arg("n_right"),
            py::arg("n_judged"))
        .def("settle", &Planner::settle, py::arg("phase"), py::arg("situation"), py::arg("n_draft"),
             py::arg("n_accepted"))
        .def("observe_decode", &Planner::observe_decode, py::arg("n"), py::arg("n_context"),
             py::arg("seconds"))
        .def("observe_draft_decode", &Planner::observe_draft_decode, py::arg("n"),
             py::arg("n_context"), py::arg("seconds"))
        .def_property_readonly("cost", &Planner::cost)
        .def_property_readonly("draft_cost", &Planner::draft_cost);
}

}  // namespace specllama
