#include "cli/printer.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>

#include "cli/json.h"
#include "specllama/error.h"
#include "specllama/stats_fields.h"

namespace specllama::cli {

namespace {

constexpr const char* kDrafted = "\x1b[32m";
constexpr const char* kDim = "\x1b[2m";
constexpr const char* kPlain = "\x1b[0m";

// Whether stdout is a terminal with colours enabled (see no-color.org).
bool terminal_has_colors() {
    const char* no_color = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0') &&
           (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
}

const char* name(FinishReason reason, bool interrupted) {
    if (interrupted) return "interrupted";
    return reason == FinishReason::length ? "length" : "stop";
}

// Converts a figure of the statistics to a type that `json` accepts.
template <typename Figure>
const Figure& plain(const Figure& figure) {
    return figure;
}

JsonObject plain(const decltype(Stats::by_source)& by_source) {
    JsonObject object;
    for (std::size_t i = 0; i < by_source.size(); ++i)
        object.add(kSourceNames[i], as_pair(by_source[i]));
    return object;
}

JsonObject plain(const Seconds& seconds) {
    JsonObject object;
    visit_seconds([&](const char* name, auto figure) { object.add(name, seconds.*figure); });
    return object;
}

JsonObject to_json(const Stats& stats) {
    JsonObject object;
    visit_stats([&](const char* name, auto figure) {
        object.add(name, plain(std::invoke(figure, stats)));
    });
    return object;
}

// Prints the cost of the draft model and the acceptance rate that it needs, which may explain why
// it was not used.
void print_draft_model(const Stats& stats) {
    if (stats.draft_break_even <= 0 || stats.decode_seconds.empty()) return;
    std::fprintf(stderr, "draft model %.3g ms a step, plain decoding %.3g ms; ",
                 1000 * stats.draft_step_seconds, 1000 * stats.decode_seconds[0]);
    if (stats.draft_break_even > 1)
        std::fputs("too slow to pay here", stderr);
    else
        std::fprintf(stderr, "pays if more than %.0f %% of its tokens are accepted",
                     100 * stats.draft_break_even);
    const bool drafted = stats.by_source[static_cast<std::size_t>(Source::model)].drafted > 0;
    std::fputs(drafted ? "\n" : "; not used in this text\n", stderr);
}

void print_table(const Stats& stats) {
    const Seconds& s = stats.seconds;
    std::fprintf(stderr, "prompt    %7d tokens  %8.3f s  %9.1f tokens/s  (%d reused)\n",
                 stats.prompt_tokens, s.prefill, stats.prompt_tokens_per_second(),
                 stats.reused_tokens);
    std::fprintf(stderr, "generated %7d tokens  %8.3f s  %9.1f tokens/s\n", stats.generated_tokens,
                 s.total - s.prefill, stats.tokens_per_second());
    std::fprintf(stderr, "seed      %llu\n", static_cast<unsigned long long>(stats.seed));
    std::fprintf(stderr, "rounds    %7d         %8.2f tokens/round\n", stats.rounds,
                 stats.tokens_per_round());
    std::fprintf(stderr, "drafted   %7d tokens  %8d accepted  %5.1f %%\n", stats.drafted,
                 stats.accepted, 100 * stats.acceptance_rate());
    if (stats.drafted > 0) {
        std::fputs("accepted by position", stderr);
        for (std::size_t i = 0; i < stats.drafted_by_position.size(); ++i) {
            std::fprintf(stderr, "  %d/%d", stats.accepted_by_position[i],
                         stats.drafted_by_position[i]);
        }
        std::fputs("\n", stderr);
    }
    for (std::size_t i = 0; i < stats.by_source.size(); ++i)
        if (stats.by_source[i].drafted > 0)
            std::fprintf(stderr, "  by %-7s%5d tokens  %8d accepted\n", kSourceNames[i],
                         stats.by_source[i].drafted, stats.by_source[i].accepted);
    print_draft_model(stats);
    bool first = true;
    for (std::size_t n = 0; n < stats.decode_seconds.size(); ++n) {
        if (stats.decode_seconds[n] == 0) continue;
        if (first) std::fputs("ms to decode n tokens", stderr);
        std::fprintf(stderr, "  %zu: %.3g", n + 1, 1000 * stats.decode_seconds[n]);
        first = false;
    }
    if (!first) std::fputs("\n", stderr);
    std::fprintf(stderr,
                 "seconds   prefill %.3f  draft %.3f  verify %.3f  choose %.3f  text %.3f  "
                 "total %.3f\n",
                 s.prefill, s.draft, s.verify, s.choose, s.text, s.total);
}

}  // namespace

Printer::Printer(const Options& options)
    : json_(options.json),
      stats_(options.stats),
      color_(!options.json && options.draft != "none" &&
             (options.color == Switch::on ||
              (options.color == Switch::automatic && terminal_has_colors()))) {
    if (color_)
        std::fprintf(stderr, "%sgreen%s: drafted, and accepted by the model\n\n", kDrafted, kPlain);
}

void Printer::prompt(const std::string& text) {
    if (color_) std::fprintf(stderr, "%s%s%s", kDim, text.c_str(), kPlain);
}

void Printer::chunk(const Chunk& chunk) {
    if (json_) {
        JsonObject line;
        line.add("type", "chunk").add("text", chunk.text);
        chunk.token == kNoToken ? line.add("token", nullptr) : line.add("token", chunk.token);
        line.add("from_draft", chunk.from_draft);
        if (chunk.logprobs) {
            line.add("logprob", chunk.logprobs->logprob).add("top_logprobs", chunk.logprobs->top);
        }
        std::cout << line.str() << '\n';
        return;
    }
    if (chunk.text.empty()) return;
    has_text_ = true;
    at_line_start_ = chunk.text.ends_with('\n');
    if (color_ && chunk.from_draft)
        std::cout << kDrafted << chunk.text << kPlain;
    else
        std::cout << chunk.text;
}

void Printer::flush() {
    std::cout.flush();
    if (!std::cout) throw Error("The text cannot be written to standard output.");
}

void Printer::end(FinishReason reason, bool interrupted, const Stats& stats) {
    if (json_) {
        JsonObject line;
        line.add("type", "result")
            .add("finish_reason", name(reason, interrupted))
            .add("stats", to_json(stats));
        std::cout << line.str() << '\n';
        flush();
        return;
    }
    // On a terminal the shell's prompt should begin on a new line; a file gets only the text.
    if (!at_line_start_ && isatty(STDOUT_FILENO) != 0) std::cout << '\n';
    std::cout.flush();
    if (stats_) {
        std::fputs("\n", stderr);
        print_table(stats);
    }
}

}  // namespace specllama::cli
