#include <vector>

#include "bind.h"
#include "plan/planner.h"
#include "specllama/error.h"

namespace specllama {

namespace {

Choice choose(Planner& planner, const Situation& situation, const Phase& phase,
              const std::vector<std::vector<Evidence>>& drafts) {
    std::vector<EvidenceSpan> spans(drafts.begin(), drafts.end());
    return planner.choose(situation, phase, spans);
}

}  // namespace

void bind_plan(py::module_& m) {
    py::enum_<Source>(m, "Source")
        .value("match", Source::match)
        .value("ngram", Source::ngram)
        .value("model", Source::model)
        .value("other", Source::other);
    py::class_<Evidence>(m, "Evidence")
        .def(py::init<Source, int, float>(), py::arg("source") = Source::other,
             py::arg("length") = 0, py::arg("confidence") = 1.0F);
    py::class_<CurvePoints>(m, "CurvePoints")
        .def(py::init<std::vector<double>, double, double>(), py::arg("seconds"),
             py::arg("context_base") = 0.0, py::arg("context_per_token") = 0.0)
        .def_readonly("seconds", &CurvePoints::seconds)
        .def_readonly("context_base", &CurvePoints::context_base)
        .def_readonly("context_per_token", &CurvePoints::context_per_token);
    py::class_<CostCurve>(m, "CostCurve")
        .def(py::init())
        .def("observe", &CostCurve::observe, py::arg("n"), py::arg("n_context"), py::arg("seconds"))
        .def("seconds", &CostCurve::seconds, py::arg("n"), py::arg("n_context") = 0)
        .def("doubt", &CostCurve::doubt, py::arg("n"), py::arg("m") = 1)
        .def("next_probe", &CostCurve::next_probe, py::arg("n_max"))
        .def("points", &CostCurve::points)
        .def("restore", &CostCurve::restore, py::arg("points"));
    py::class_<Phase>(m, "Phase").def_readonly("weights", &Phase::weights);
    py::class_<Choice>(m, "Choice")
        .def(py::init([](int n_draft, double tokens, double seconds) {
            return Choice{n_draft > 0 ? 0 : -1, n_draft, tokens, seconds};
        }), py::kw_only(), py::arg("n_draft") = 0, py::arg("tokens") = 1.0, py::arg("seconds"))
        .def_readonly("draft", &Choice::draft)
        .def_readonly("n_draft", &Choice::n_draft)
        .def_readonly("tokens", &Choice::tokens)
        .def_readonly("seconds", &Choice::seconds)
        .def_readonly("probe", &Choice::probe);
    py::class_<Situation>(m, "Situation")
        .def(py::init<int, int, int, double, double>(), py::kw_only(), py::arg("n_tokens"),
             py::arg("n_pending") = 1, py::arg("max_draft") = kMaxSpecLength,
             py::arg("overhead") = 0.0, py::arg("spent") = 0.0);
    py::class_<Planner>(m, "Planner")
        .def(py::init())
        .def("begin", &Planner::begin, py::arg("temperature") = 0.0, py::arg("n_prompt") = 0)
        .def("choose", &choose)
        .def("another", [](Planner& planner, const Situation& situation, const Phase& phase,
                           const std::vector<Evidence>& draft, const Choice& otherwise) {
            return planner.another(situation, phase, draft, otherwise);
        })
        .def("observe", [](Planner& planner, Phase& phase, int n_tokens,
                           const std::vector<Evidence>& draft, int n_right, int n_judged) {
            planner.observe(phase, n_tokens, draft, n_right, n_judged);
        })
        .def("observe_decode", &Planner::observe_decode)
        .def("observe_draft_decode", &Planner::observe_draft_decode)
        .def_property_readonly("cost", &Planner::cost, py::return_value_policy::reference_internal)
        .def_property_readonly("draft_cost", &Planner::draft_cost, py::return_value_policy::reference_internal);
}

}  // namespace specllama
