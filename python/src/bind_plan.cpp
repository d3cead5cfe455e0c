#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <pybind11/functional.h>

#include "bind.h"
#include "plan/planner.h"
#include "plan/verification_batch.h"
#include "specllama/error.h"

namespace specllama {

namespace {

void check_width(int n) {
    if (n < 1 || n > CostCurve::kMaxTokens)
        throw InvalidArgument("A width is from 1 to " + std::to_string(CostCurve::kMaxTokens) +
                              ", not " + std::to_string(n) + ".");
}

// A sequence's part of a round, and the data of the spans in its candidates.
struct PlannedRound {
    RoundRequest request;
    RoundPlan plan;
    RoundOutcome outcome;
    std::deque<std::vector<Evidence>> evidence;
    std::deque<std::vector<Alternative>> alternatives;
};

// alternatives: evidence and parent of each, numbered after the draft's own tokens. Parent -1: the
// committed text.
void add(PlannedRound& round, std::vector<Evidence> evidence, int n_known, int n_rest, bool drawn,
         bool required, const std::vector<std::pair<Evidence, int>>& alternatives) {
    const auto n_draft = static_cast<int>(evidence.size());
    std::vector<Alternative>& all = round.alternatives.emplace_back();
    for (const auto& [known, parent] : alternatives) {
        const int number = n_draft + static_cast<int>(all.size());
        if (parent < -1 || parent >= number)
            throw InvalidArgument("A parent is from -1 to the number before its own.");
        Alternative& one = all.emplace_back(Alternative{.evidence = known, .parent = parent});
        one.rank = parent + 1 < n_draft ? 1 : 0;
        for (int i = n_draft; i < number; ++i) one.rank += all[i - n_draft].parent == parent;
    }
    round.evidence.push_back(std::move(evidence));
    round.request.candidates.push_back(
        {round.evidence.back(), all, n_known, n_rest, drawn, required});
}

void on_alternative(PlannedRound& round, std::size_t candidate, std::size_t number, bool right) {
    round.alternatives.at(candidate).at(number).right = right;
}

void on_result(PlannedRound& round, int n_accepted, const std::vector<int>& n_right,
               std::optional<int> n_judged, int n_repeated) {
    if (n_right.size() != round.request.candidates.size())
        throw InvalidArgument("n_right must have a number for each candidate.");
    const std::optional<Choice>& other = round.plan.without_draft_model;
    if (other && other->candidate >= std::ssize(n_right))
        throw InvalidArgument("without_draft_model must have chosen one of the candidates.");
    round.outcome = {n_accepted, n_judged.value_or(n_accepted + 1), n_repeated, n_right};
}

void choose(Planner& planner, const std::vector<PlannedRound*>& rounds) {
    std::vector<RoundRequest> requests;
    std::vector<RoundPlan> plans;
    for (const PlannedRound* round : rounds) {
        requests.push_back(round->request);
        plans.push_back(round->plan);
    }
    planner.choose(requests, plans);
    for (std::size_t i = 0; i < rounds.size(); ++i) rounds[i]->plan = plans[i];
}

void bind_cost_curve(py::module_& m) {
    py::class_<CurvePoints>(m, "CurvePoints", "A cost curve as numbers.")
        .def(py::init<std::vector<double>, double, double, double>(), py::arg("seconds"),
             py::arg("context_base") = 0.0, py::arg("context_per_token") = 0.0,
             py::arg("width_switch") = 0.0)
        .def_readonly("seconds", &CurvePoints::seconds)
        .def_readonly("context_base", &CurvePoints::context_base)
        .def_readonly("context_per_token", &CurvePoints::context_per_token)
        .def_readonly("width_switch", &CurvePoints::width_switch);
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
        .def(
            "set_width_switch",
            [](CostCurve& curve, double seconds, bool pads) {
                curve.width_switch().set_seconds(seconds);
                curve.width_switch().set_padding(pads);
            },
            py::arg("seconds"), py::arg("pads") = true)
        .def("points", &CostCurve::points)
        .def("restore", &CostCurve::restore, py::arg("points"));
}

using DecodeCost = std::function<double(int n_rows)>;

std::vector<double> decode_costs(const VerificationBatch& batch, const DecodeCost& cost) {
    std::vector<double> all = {0};
    for (int n = 1; n <= batch.n_most(); ++n) all.push_back(cost(n));
    return all;
}

void bind_verification_batch(py::module_& m) {
    py::class_<VerificationBatch::Row>(m, "Row", "A candidate token.")
        .def_readonly("sequence", &VerificationBatch::Row::sequence)
        .def_readonly("number", &VerificationBatch::Row::number)
        .def_readonly("tokens", &VerificationBatch::Row::tokens)
        .def_readonly("gain", &VerificationBatch::Row::gain);
    py::class_<VerificationBatch>(m, "VerificationBatch",
                                  "Chooses the tokens that are verified in one decode.")
        .def(py::init())
        .def("add_sequence", &VerificationBatch::add_sequence, py::arg("n_rows") = 1,
             py::arg("draft_budget") = std::numeric_limits<double>::infinity(),
             py::arg("stream") = 0, py::arg("most") = kMaxSpecLength)
        .def("add_row", &VerificationBatch::add_row, py::arg("predecessor"), py::arg("tokens"),
             py::arg("gain"))
        .def(
            "select",
            [](VerificationBatch& batch, const DecodeCost& cost) {
                batch.select(decode_costs(batch, cost));
            },
            py::arg("cost"))
        .def(
            "select_per_stream",
            [](VerificationBatch& batch, const DecodeCost& cost) {
                batch.select_per_stream(decode_costs(batch, cost));
            },
            py::arg("cost"))
        .def_property_readonly("chosen",
                               [](const VerificationBatch& batch) {
                                   return std::vector<VerificationBatch::Row>(batch.chosen());
                               })
        .def_property_readonly("seconds", &VerificationBatch::seconds);
}

}  // namespace

void bind_plan(py::module_& m) {
    bind_cost_curve(m);
    bind_verification_batch(m);
    py::class_<Evidence>(m, "Evidence", "A drafter's evidence for a token that it proposes.")
        .def(py::init<Source, int, float>(), py::arg("source"), py::arg("length") = 0,
             py::arg("confidence") = 1.0F)
        .def_readonly("source", &Evidence::source)
        .def_readonly("length", &Evidence::length)
        .def_readonly("confidence", &Evidence::confidence);
    const py::class_<TextRegime> opaque(m, "TextRegime",
                                        "What is known about the regime of one request's text.");
    py::class_<Choice>(m, "Choice", "The draft that a round should verify.")
        .def_readonly("candidate", &Choice::candidate)
        .def_readonly("n_draft", &Choice::n_draft)
        .def_readonly("tokens", &Choice::tokens)
        .def_readonly("seconds", &Choice::seconds)
        .def_readonly("n_padding", &Choice::n_padding)
        .def_readonly("time_saved", &Choice::time_saved);
    py::class_<PlannedRound>(m, "PlannedRound", "A sequence's part of a round.")
        .def(py::init([](TextRegime& regime, int n_tokens, int n_pending, int max_draft,
                         int n_unprocessed, double overhead, double spent,
                         const std::optional<Choice>& without_draft_model, int stream, int max_rows,
                         int n_left) {
                 PlannedRound round;
                 round.request.regime = &regime;
                 round.request.n_tokens = n_tokens;
                 round.request.n_pending = n_pending;
                 round.request.max_draft = max_draft;
                 round.request.n_unprocessed = n_unprocessed;
                 round.request.overhead = overhead;
                 round.request.spent = spent;
                 round.plan.without_draft_model = without_draft_model;
                 round.request.stream = stream;
                 round.request.max_rows = max_rows;
                 round.request.n_left = n_left;
                 return round;
             }),
             py::arg("regime"), py::arg("n_tokens"), py::kw_only(), py::arg("n_pending") = 1,
             py::arg("max_draft") = kMaxSpecLength, py::arg("n_unprocessed") = 0,
             py::arg("overhead") = 0.0, py::arg("spent") = 0.0,
             py::arg("without_draft_model") = std::nullopt, py::arg("stream") = 0,
             py::arg("max_rows") = kMaxSpecLength, py::arg("n_left") = RoundRequest{}.n_left,
             py::keep_alive<1, 2>())
        .def("add", &add, py::arg("evidence"), py::kw_only(), py::arg("n_known") = 0,
             py::arg("n_rest") = 0, py::arg("drawn") = false, py::arg("required") = false,
             py::arg("alternatives") = std::vector<std::pair<Evidence, int>>())
        .def("on_alternative", &on_alternative, py::arg("candidate"), py::arg("number"),
             py::arg("right"))
        .def_property_readonly("rows", [](const PlannedRound& round) { return round.plan.rows; })
        .def_property(
            "n_to_check", [](const PlannedRound& round) { return round.plan.n_to_check; },
            [](PlannedRound& round, int n) { round.plan.n_to_check = n; })
        .def_property_readonly("choice",
                               [](const PlannedRound& round) { return round.plan.choice; })
        .def("on_result", &on_result, py::arg("n_accepted"), py::arg("n_right"),
             py::arg("n_judged") = std::nullopt, py::arg("n_repeated") = 0);
    py::class_<Planner>(m, "Planner", "Chooses the draft to verify, and its number of tokens.")
        .def(py::init<bool, int>(), py::kw_only(), py::arg("per_sequence_streams") = false,
             py::arg("most_rows") = VerificationBatch::kAnyNumber)
        .def("begin", &Planner::begin, py::arg("temperature") = 0.0, py::arg("n_prompt") = 0)
        .def("choose", &choose, py::arg("rounds"))
        .def(
            "n_to_check",
            [](Planner& planner, const PlannedRound& round) {
                return planner.n_to_check(round.request, round.plan.choice);
            },
            py::arg("round"))
        .def(
            "set_tokens_per_step",
            [](Planner& planner, int n) {
                check_width(n);
                planner.draft_cost().set_tokens_per_step(n);
            },
            py::arg("n"))
        .def("break_even", &Planner::break_even, py::arg("n_context"))
        .def(
            "should_continue",
            [](Planner& planner, const PlannedRound& round, const std::vector<Evidence>& draft,
               double seconds) {
                return planner.should_continue(round.request, round.plan, draft, seconds);
            },
            py::arg("round"), py::arg("draft"), py::arg("seconds") = 0.0)
        .def(
            "learn",
            [](Planner& planner, const PlannedRound& round) {
                if (round.outcome.n_right.size() != round.request.candidates.size())
                    throw InvalidArgument("Call on_result before learn.");
                planner.learn(round.request, round.plan, round.outcome);
            },
            py::arg("round"))
        .def(
            "observe_decode",
            [](Planner& planner, int n, int n_context, double seconds) {
                planner.cost().observe(n, n_context, seconds);
            },
            py::arg("n"), py::arg("n_context"), py::arg("seconds"))
        .def(
            "observe_drafting",
            [](Planner& planner, int n_steps, int n_drafted, int n_unprocessed, int n_context,
               double seconds) {
                planner.draft_cost().observe(n_steps, n_drafted, n_unprocessed, n_context, seconds);
            },
            py::arg("n_steps"), py::arg("n_drafted"), py::arg("n_unprocessed"),
            py::arg("n_context"), py::arg("seconds"))
        .def_property_readonly("cost",
                               [](Planner& planner) -> CostCurve& { return planner.cost(); })
        .def_property_readonly("draft_cost", [](Planner& planner) -> CostCurve& {
            return planner.draft_cost().curves().now();
        });
}

}  // namespace specllama
