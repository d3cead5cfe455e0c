#include "bind.h"
#include "specllama/stats.h"

namespace specllama {

namespace {

py::dict to_dict(const Seconds& seconds) {
    py::dict dict;
    dict["prefill"] = seconds.prefill;
    dict["draft"] = seconds.draft;
    dict["verify"] = seconds.verify;
    dict["choose"] = seconds.choose;
    dict["text"] = seconds.text;
    dict["total"] = seconds.total;
    return dict;
}

std::vector<std::pair<int, int>> by_round(const Stats& stats) {
    std::vector<std::pair<int, int>> pairs;
    pairs.reserve(stats.by_round.size());
    for (const Round& round : stats.by_round) pairs.emplace_back(round.drafted, round.accepted);
    return pairs;
}

py::dict by_drafter(const Stats& stats) {
    py::dict dict;
    for (std::size_t i = 0; i < stats.by_source.size(); ++i)
        dict[Stats::kSources[i]] =
            py::make_tuple(stats.by_source[i].drafted, stats.by_source[i].accepted);
    return dict;
}

py::dict to_dict(const Stats& stats) {
    py::dict dict;
    dict["seed"] = stats.seed;
    dict["exact"] = stats.exact;
    dict["prompt_tokens"] = stats.prompt_tokens;
    dict["reused_tokens"] = stats.reused_tokens;
    dict["generated_tokens"] = stats.generated_tokens;
    dict["rounds"] = stats.rounds;
    dict["drafted"] = stats.drafted;
    dict["accepted"] = stats.accepted;
    dict["draft_decoded_tokens"] = stats.draft_decoded_tokens;
    dict["draft_guessed"] = stats.draft_guessed;
    dict["draft_guessed_right"] = stats.draft_guessed_right;
    dict["acceptance_rate"] = stats.acceptance_rate();
    dict["tokens_per_round"] = stats.tokens_per_round();
    dict["tokens_per_second"] = stats.tokens_per_second();
    dict["prompt_tokens_per_second"] = stats.prompt_tokens_per_second();
    dict["seconds"] = to_dict(stats.seconds);
    dict["drafted_by_position"] = stats.drafted_by_position;
    dict["accepted_by_position"] = stats.accepted_by_position;
    dict["by_round"] = by_round(stats);
    dict["by_drafter"] = by_drafter(stats);
    dict["decode_seconds"] = stats.decode_seconds;
    dict["draft_step_seconds"] = stats.draft_step_seconds;
    dict["drafter_errors"] = stats.drafter_errors;
    dict["last_drafter_error"] = stats.last_drafter_error;
    return dict;
}

}  // namespace

void bind_stats(py::module_& m) {
    py::class_<Seconds>(m, "Seconds", "Time in the parts of a generation, in seconds.")
        .def_readonly("prefill", &Seconds::prefill)
        .def_readonly("draft", &Seconds::draft)
        .def_readonly("verify", &Seconds::verify)
        .def_readonly("choose", &Seconds::choose)
        .def_readonly("text", &Seconds::text)
        .def_readonly("total", &Seconds::total)
        .def("__repr__", [](const Seconds& seconds) {
            return py::str("Seconds({})").format(to_dict(seconds));
        });
    py::class_<Stats>(m, "Stats", "What a generation did: counts, rates and times.")
        .def_readonly("seed", &Stats::seed)
        .def_readonly("exact", &Stats::exact)
        .def_readonly("prompt_tokens", &Stats::prompt_tokens)
        .def_readonly("reused_tokens", &Stats::reused_tokens)
        .def_readonly("generated_tokens", &Stats::generated_tokens)
        .def_readonly("rounds", &Stats::rounds)
        .def_readonly("drafted", &Stats::drafted)
        .def_readonly("accepted", &Stats::accepted)
        .def_readonly("draft_decoded_tokens", &Stats::draft_decoded_tokens)
        .def_readonly("draft_guessed", &Stats::draft_guessed)
        .def_readonly("draft_guessed_right", &Stats::draft_guessed_right)
        .def_property_readonly("acceptance_rate", &Stats::acceptance_rate)
        .def_property_readonly("tokens_per_round", &Stats::tokens_per_round)
        .def_property_readonly("tokens_per_second", &Stats::tokens_per_second)
        .def_property_readonly("prompt_tokens_per_second", &Stats::prompt_tokens_per_second)
        .def_readonly("seconds", &Stats::seconds)
        .def_readonly("drafted_by_position", &Stats::drafted_by_position)
        .def_readonly("accepted_by_position", &Stats::accepted_by_position)
        .def_property_readonly("by_round", &by_round)
        .def_property_readonly("by_drafter", &by_drafter)
        .def_readonly("decode_seconds", &Stats::decode_seconds)
        .def_readonly("draft_step_seconds", &Stats::draft_step_seconds)
        .def_readonly("drafter_errors", &Stats::drafter_errors)
        .def_readonly("last_drafter_error", &Stats::last_drafter_error)
        .def("to_dict", [](const Stats& stats) { return to_dict(stats); })
        .def("__repr__", [](const Stats& stats) {
            return py::str(
                       "Stats(prompt_tokens={}, generated_tokens={}, rounds={}, drafted={}, "
                       "accepted={}, tokens_per_round={:.2f}, tokens_per_second={:.1f})")
                .format(stats.prompt_tokens, stats.generated_tokens, stats.rounds, stats.drafted,
                        stats.accepted, stats.tokens_per_round(), stats.tokens_per_second());
        });
}

}  // namespace specllama
