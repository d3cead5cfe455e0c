#include "cli/run.h"

#include <cstdio>
#include <optional>
#include <vector>

#include "cli/chat.h"
#include "cli/printer.h"
#include "cli/progress_bar.h"
#include "cli/prompt.h"
#include "specllama/device.h"
#include "specllama/error.h"
#include "specllama/model_file.h"
#include "specllama/session.h"

namespace specllama::cli {

namespace {

// Sets the model and its drafter where the options leave them open.
void name_models(Options& options) {
    SessionOptions& session = options.session;
    const bool bundled = session.model.path.empty();
    if (bundled) session.model.path = bundled_model(options, "target-q8_0.gguf");
    if (options.draft == "none") {
        session.draft.path.clear();
        session.corpus.clear();
        session.memory = 0;
        session.memory_file.clear();
    } else if (session.draft.path.empty()) {
        const std::string draft =
            options.draft != "auto"
                ? options.draft
                : automatic_draft(session.model.path,
                                  bundled ? bundled_model(options, "draft-q8_0.gguf") : "");
        session.draft.mtp = draft == "mtp";
        if (draft != "mtp" && draft != "ngram") session.draft.path = draft;
    }
}

}  // namespace

int run(Options options, bool (*interrupted)()) {
    set_verbose(options.verbose);
    std::string prompt;
    try {
        prompt = read_prompt(options);
    } catch (const UsageError&) {
        if (interrupted()) return kInterrupted;  // Ctrl-C ended the reading
        throw;
    }
    if (interrupted()) return kInterrupted;
    for (const std::string& path : options.media) check_file("image", path);
    if (options.grammar_file) set_grammar(options, read_grammar(*options.grammar_file));
    name_models(options);
    if (options.draft != "none") options.session.ngram.emplace();

    std::optional<ProgressBar> bar;
    bar.emplace("loading", 0.3);
    options.session.load_progress = [&](float fraction) {
        bar->show(fraction);
        return !interrupted();
    };
    std::optional<Session> session;
    try {
        session.emplace(options.session);
    } catch (const Interrupted&) {
        return kInterrupted;
    }
    bar.emplace("reading the prompt", 1.0);
    const MediaPrompt made = make_prompt(*session, prompt, options);
    Stream stream = session->start(made, options.generate);
    Printer printer(options);
    if (prompt == kBuiltinPrompt) printer.prompt(prompt);
    std::vector<Chunk> chunks;
    bool stopped = false;
    const auto print = [&] {
        for (const Chunk& chunk : chunks) printer.chunk(chunk);
        printer.flush();
    };
    const auto next = [&] {
        try {
            return stream.step(chunks);
        } catch (const Error&) {
            bar->clear();
            while (stream.take(chunks)) print();  // the text generated before the error
            throw;
        }
    };
    while (next()) {
        if (stream.in_prompt())
            bar->show(static_cast<double>(stream.n_prefilled()) /
                      static_cast<double>(made.tokens.size()));
        else
            bar->clear();
        print();
        if (!stopped && interrupted() && !stream.done()) {
            stopped = true;
            stream.cancel();
        }
    }
    bar->clear();
    printer.end(stream.finish_reason(), stopped, stream.stats());
    if (!stopped && !options.json && stream.finish_reason() == FinishReason::stop &&
        !printer.has_text())
        std::fprintf(stderr, "spec-cli: %s\n", why_no_text(*session, options).c_str());
    return stopped ? kInterrupted : kOk;
}

}  // namespace specllama::cli
