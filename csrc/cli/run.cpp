#include "cli/run.h"

#include <cstdio>
#include <optional>
#include <vector>

#include "cli/actions.h"
#include "cli/printer.h"
#include "cli/progress_bar.h"
#include "cli/prompt.h"
#include "specllama/device.h"
#include "specllama/error.h"
#include "specllama/model_file.h"
#include "specllama/session.h"

namespace specllama::cli {

namespace {

// Fills in which model generates and which one drafts.
void name_models(Options& options) {
    SessionOptions& session = options.session;
    session.model.path =
        options.model ? *options.model : bundled_model(options, "target-q8_0.gguf");
    if (options.draft == Draft::automatic && !options.model && !session.draft_model)
        session.draft_model.emplace().model.path = bundled_model(options, "draft-q8_0.gguf");
    else if (!session.draft_model &&
             (options.draft == Draft::mtp ||
              (options.draft == Draft::automatic && brings_head(session.model.path))))
        session.draft_model.emplace().mtp = true;
    if (options.draft == Draft::none) {
        session.draft_model.reset();
        session.corpus.clear();
    }
    if (!session.draft_model) return;
    session.draft_model->model.n_gpu_layers =
        options.draft_n_gpu_layers ? options.draft_n_gpu_layers : session.model.n_gpu_layers;
    // Only the target uses RPC servers: a draft that comes over a network is worth little. And a
    // draft model without layers on a GPU needs none.
    const bool like_target = session.model.rpc.empty() && options.draft_n_gpu_layers != 0;
    session.draft_model->model.device =
        options.draft_device.value_or(like_target ? session.model.device : "");
    session.draft_model->context = session.context;
    session.draft_model->model.load_mode = session.model.load_mode;
}

}  // namespace

int run(Options options, bool (*interrupted)()) {
    set_verbose(options.verbose);
    std::string prompt;
    try {
        prompt = read_prompt(options);
    } catch (const UsageError&) {
        if (interrupted()) return kInterrupted;  // Ctrl-C cut the reading short
        throw;
    }
    if (interrupted()) return kInterrupted;
    if (options.grammar_file) set_grammar(options, read_grammar(*options.grammar_file));
    name_models(options);
    if (options.draft != Draft::none) options.session.ngram.emplace();

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
    const std::vector<Token> tokens = session->tokenize(prompt);
    Stream stream = session->start(tokens, options.generate);
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
                      static_cast<double>(tokens.size()));
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
    return stopped ? kInterrupted : kOk;
}

}  // namespace specllama::cli
