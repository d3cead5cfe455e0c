#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <pybind11/functional.h>

#include "bind.h"
#include "plan/allotment.h"
#include "plan/planner.h"
#include "specllama/error.h"

namespace specllama {

namespace {

void check_width(int n) {
    if (n < 1 || n > CostCurve::kMaxTokens)
        throw InvalidArgument("A width is from 1 to " + std::to_string(CostCurve::kMaxTokens) +
                              ", not " + std::to_string(n) + ".");
}

// A sequence's turn in a round, and what the spans in its candidates refer to.
struct HeldTurn {
    Turn turn;
    std::deque<std::vector<Evidence>> evidence;
    std::deque<std::vector<Side>> sides;
};

// sides: evidence and parent of each token beside the draft. They are numbered after the draft's
// own tokens; parent -1: the committed text.
void add(HeldTurn& held, std::vector<Evidence> evidence, int n_known, int n_rest, bool drawn,
         bool required, const std::vector<std::pair<Evidence, int>>& sides) {
    const auto n_draft = static_cast<int>(evidence.size());
    std::vector<Side>& all = held.sides.emplace_back();
    for (const auto& [known, parent] : sides) {
        const int number = n_draft + static_cast<int>(all.size());
        if (parent < -1 || parent >= number)
            throw InvalidArgument("A parent is from -1 to the number before its own.");
        Side& side = all.emplace_back(Side{.evidence = known, .parent = parent});
        side.rank = parent + 1 < n_draft ? 1 : 0;
        for (int i = n_draft; i < number; ++i) side.rank += all[i - n_draft].parent == parent;
    }
    held.evidence.push_back(std::move(evidence));
    held.turn.candidates.push_back({held.evidence.back(), all, n_known, n_rest, drawn, required});
}

void hear(HeldTurn& held, std::size_t candidate, std::size_t side, bool right) {
    held.sides.at(candidate).at(side).right = right;
}

void came(HeldTurn& held, int n_accepted, const std::vector<int>& n_right,
          std::optional<int> n_judged, int n_again) {
    if (n_right.size() != held.turn.candidates.size())
        throw InvalidArgument("n_right must have a number for each candidate.");
    if (held.turn.unasked && held.turn.unasked->candidate >= std::ssize(n_right))
        throw InvalidArgument("unasked must have chosen one of the candidates.");
    held.turn.n_accepted = n_accepted;
    held.turn.n_judged = n_judged.value_or(n_accepted + 1);
    held.turn.n_again = n_again;
    for (std::size_t i = 0; i < n_right.size(); ++i) held.turn.candidates[i].n_right = n_right[i];
}

void choose(Planner& planner, const std::vector<HeldTurn*>& turns) {
    std::vector<Turn> all;
    all.reserve(turns.size());
    for (const HeldTurn* held : turns) all.push_back(held->turn);
    planner.choose(all);
    for (std::size_t i = 0; i < turns.size(); ++i) {
        turns[i]->turn.choice = all[i].choice;
        turns[i]->turn.rows = all[i].rows;
    }
}

void bind_cost_curve(py::module_& m) {
    py::class_<CurvePoints>(m, "CurvePoints", "A cost curve as plain numbers.")
        .def(py::init<std::vector<double>, double, double, double>(), py::arg("seconds"),
             py::arg("context_base") = 0.0, py::arg("context_per_token") = 0.0,
             py::arg("change") = 0.0)
        .def_readonly("seconds", &CurvePoints::seconds)
        .def_readonly("context_base", &CurvePoints::context_base)
        .def_readonly("context_per_token", &CurvePoints::context_per_token)
        .def_readonly("change", &CurvePoints::change);
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
            "set_change",
            [](CostCurve& curve, double seconds, bool pads) {
                curve.change().set_seconds(seconds);
                curve.change().set_padding(pads);
            },
            py::arg("seconds"), py::arg("pads") = true)
        .def("points", &CostCurve::points)
        .def("restore", &CostCurve::restore, py::arg("points"));
}

using Price = std::function<double(int n_rows)>;

std::vector<double> prices(const Allotment& allotment, const Price& price) {
    std::vector<double> all = {0};
    for (int n = 1; n <= allotment.n_most(); ++n) all.push_back(price(n));
    return all;
}

void bind_allotment(py::module_& m) {
    py::class_<Allotment::Row>(m, "Row", "A token that could be verified.")
        .def_readonly("sequence", &Allotment::Row::sequence)
        .def_readonly("number", &Allotment::Row::number)
        .def_readonly("tokens", &Allotment::Row::tokens)
        .def_readonly("gain", &Allotment::Row::gain);
    py::class_<Allotment>(m, "Allotment", "Which of the tokens at hand are verified in one decode.")
        .def(py::init())
        .def("add_sequence", &Allotment::add_sequence, py::arg("n_rows") = 1,
             py::arg("stake") = std::numeric_limits<double>::infinity(), py::arg("place") = 0,
             py::arg("most") = kMaxSpecLength)
        .def("add_row", &Allotment::add_row, py::arg("predecessor"), py::arg("tokens"),
             py::arg("gain"))
        .def(
            "allot",
            [](Allotment& allotment, const Price& price) {
                allotment.allot(prices(allotment, price));
            },
            py::arg("price"))
        .def(
            "allot_split",
            [](Allotment& allotment, const Price& price) {
                allotment.allot_split(prices(allotment, price));
            },
            py::arg("price"))
        .def_property_readonly("chosen",
                               [](const Allotment& allotment) {
                                   return std::vector<Allotment::Row>(allotment.chosen());
                               })
        .def_property_readonly("seconds", &Allotment::seconds);
}

}  // namespace

void bind_plan(py::module_& m) {
    bind_cost_curve(m);
    bind_allotment(m);
    py::class_<Evidence>(m, "Evidence", "What a drafter knows about one token it proposes.")
        .def(py::init<Source, int, float>(), py::arg("source"), py::arg("length") = 0,
             py::arg("confidence") = 1.0F)
        .def_readonly("source", &Evidence::source)
        .def_readonly("length", &Evidence::length)
        .def_readonly("confidence", &Evidence::confidence);
    const py::class_<Phase> opaque(m, "Phase",
                                   "What is known of the phase that one request's text is in.");
    py::class_<Choice>(m, "Choice", "What a round should do.")
        .def_readonly("candidate", &Choice::candidate)
        .def_readonly("n_draft", &Choice::n_draft)
        .def_readonly("tokens", &Choice::tokens)
        .def_readonly("seconds", &Choice::seconds)
        .def_readonly("n_padding", &Choice::n_padding)
        .def_readonly("saved", &Choice::saved);
    py::class_<HeldTurn>(m, "Turn", "A sequence in a round.")
        .def(py::init([](Phase& phase, int n_tokens, int n_pending, int max_draft, int n_behind,
                         double overhead, double spent, const std::optional<Choice>& unasked,
                         int place, int max_rows, int n_left) {
                 HeldTurn held;
                 held.turn.phase = &phase;
                 held.turn.n_tokens = n_tokens;
                 held.turn.n_pending = n_pending;
                 held.turn.max_draft = max_draft;
                 held.turn.n_behind = n_behind;
                 held.turn.overhead = overhead;
                 held.turn.spent = spent;
                 held.turn.unasked = unasked;
                 held.turn.place = place;
                 held.turn.max_rows = max_rows;
                 held.turn.n_left = n_left;
                 return held;
             }),
             py::arg("phase"), py::arg("n_tokens"), py::kw_only(), py::arg("n_pending") = 1,
             py::arg("max_draft") = kMaxSpecLength, py::arg("n_behind") = 0,
             py::arg("overhead") = 0.0, py::arg("spent") = 0.0, py::arg("unasked") = std::nullopt,
             py::arg("place") = 0, py::arg("max_rows") = kMaxSpecLength,
             py::arg("n_left") = Turn{}.n_left, py::keep_alive<1, 2>())
        .def("add", &add, py::arg("evidence"), py::kw_only(), py::arg("n_known") = 0,
             py::arg("n_rest") = 0, py::arg("drawn") = false, py::arg("required") = false,
             py::arg("sides") = std::vector<std::pair<Evidence, int>>())
        .def("hear", &hear, py::arg("candidate"), py::arg("side"), py::arg("right"))
        .def_property_readonly("rows", [](const HeldTurn& held) { return held.turn.rows; })
        .def_property(
            "n_guess", [](const HeldTurn& held) { return held.turn.n_guess; },
            [](HeldTurn& held, int n) { held.turn.n_guess = n; })
        .def_property_readonly("choice", [](const HeldTurn& held) { return held.turn.choice; })
        .def("came", &came, py::arg("n_accepted"), py::arg("n_right"),
             py::arg("n_judged") = std::nullopt, py::arg("n_again") = 0);
    py::class_<Planner>(m, "Planner", "Decides how many tokens of which draft are verified.")
        .def(py::init<bool, int>(), py::kw_only(), py::arg("split") = false,
             py::arg("most_rows") = Allotment::kAnyNumber)
        .def("begin", &Planner::begin, py::arg("temperature") = 0.0, py::arg("n_prompt") = 0)
        .def("choose", &choose, py::arg("turns"))
        .def(
            "n_guess",
            [](Planner& planner, const HeldTurn& held) { return planner.n_guess(held.turn); },
            py::arg("turn"))
        .def(
            "goes_on",
            [](Planner& planner, const HeldTurn& held, const std::vector<Evidence>& draft,
               double seconds) { return planner.goes_on(held.turn, draft, seconds); },
            py::arg("turn"), py::arg("draft"), py::arg("seconds") = 0.0)
        .def(
            "learn", [](Planner& planner, const HeldTurn& held) { planner.learn(held.turn); },
            py::arg("turn"))
        .def(
            "observe_decode",
            [](Planner& planner, int n, int n_context, double seconds) {
                planner.cost().observe(n, n_context, seconds);
            },
            py::arg("n"), py::arg("n_context"), py::arg("seconds"))
        .def(
            "observe_drafting",
            [](Planner& planner, int n_steps, int n_drafted, int n_behind, int n_context,
               double seconds) {
                planner.draft_cost().observe(n_steps, n_drafted, n_behind, n_context, seconds);
            },
            py::arg("n_steps"), py::arg("n_drafted"), py::arg("n_behind"), py::arg("n_context"),
            py::arg("seconds"))
        .def_property_readonly("cost", &Planner::cost)
        .def_property_readonly("draft_cost", [](Planner& planner) -> CostCurve& {
            return planner.draft_cost().curve();
        });
}

}  // namespace specllama
