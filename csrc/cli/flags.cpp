#include "cli/flags.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace specllama::cli {

namespace {

using Action = decltype(Flag::action);

// Parses a whole number. wanted: what the flag takes, for the error message.
int whole(const std::string& value, const std::string& wanted = "a whole number") {
    int number = 0;
    const char* end = value.data() + value.size();
    const auto [at, error] = std::from_chars(value.data(), end, number);
    if (at == end && error == std::errc::result_out_of_range)
        throw UsageError("cannot be " + value);
    if (error != std::errc{} || at != end)
        throw UsageError("needs " + wanted + ", not \"" + value + "\"");
    return number;
}

// Parses any number.
float real(const std::string& value, const std::string& wanted) {
    char* end = nullptr;
    const float number = std::strtof(value.c_str(), &end);
    if (value.empty() || *end != '\0')
        throw UsageError("needs " + wanted + ", not \"" + value + "\"");
    return number;
}

// Stores a whole number in a member of Options.
Action integer(const std::function<int&(Options&)>& member) {
    return [member](Options& options, const std::string& value) { member(options) = whole(value); };
}

// The same for any number.
Action number(const std::function<double&(Options&)>& member) {
    return [member](Options& options, const std::string& value) {
        char* end = nullptr;
        const double parsed = std::strtod(value.c_str(), &end);
        if (value.empty() || *end != '\0')
            throw UsageError("needs a number, not \"" + value + "\"");
        member(options) = parsed;
    };
}

void set_seed(Options& options, const std::string& value) {
    if (value == "-1") {  // a fresh seed, as in llama.cpp
        options.generate.sampling.seed.reset();
        return;
    }
    std::uint64_t seed = 0;
    const char* end = value.data() + value.size();
    const auto [at, error] = std::from_chars(value.data(), end, seed);
    if (error != std::errc{} || at != end)
        throw UsageError("needs a whole number from -1 (a fresh one) to 2^64 - 1, not \"" + value +
                         "\"");
    options.generate.sampling.seed = seed;
}

void set_logprobs(Options& options, const std::string& value) {
    const int n = whole(value);
    if (n < 0) throw UsageError("needs 0 or more, not " + value);
    options.generate.sampling.logprobs = n;
}

void set_acceptance(Options& options, const std::string& value) {
    AcceptanceRule& rule = options.generate.sampling.acceptance;
    if (value != "coupled" && value != "rejection")
        throw UsageError("must be coupled or rejection, not \"" + value + "\"");
    rule = value == "coupled" ? AcceptanceRule::coupled : AcceptanceRule::rejection;
}

Action set(bool Options::*member) {
    return [member](Options& options, const std::string&) { options.*member = true; };
}

void set_draft(Options& options, const std::string& value) {
    static const std::map<std::string, Draft> kDrafts = {{"auto", Draft::automatic},
                                                         {"mtp", Draft::mtp},
                                                         {"ngram", Draft::ngram},
                                                         {"none", Draft::none}};
    const auto found = kDrafts.find(value);
    if (found == kDrafts.end())
        throw UsageError("must be auto, mtp, ngram or none, not \"" + value + "\"");
    options.draft = found->second;
}

void set_spec_length(Options& options, const std::string& value) {
    if (value == "auto")
        options.session.spec_length.reset();
    else
        options.session.spec_length = whole(value, "auto or a whole number");
}

void set_spec_tree(Options& options, const std::string& value) {
    std::optional<int>& most = options.session.spec_tree;
    if (value == "auto")
        most.reset();
    else if (value == "off")
        most = 1;
    else
        most = whole(value, "auto, off or a whole number");
}

void set_flash_attention(Options& options, const std::string& value) {
    Switch& wish = options.session.context.flash_attn;
    if (value == "auto")
        wish = Switch::automatic;
    else if (value == "on" || value == "off")
        wish = value == "on" ? Switch::on : Switch::off;
    else
        throw UsageError("must be auto, on or off, not \"" + value + "\"");
}

// An empty list is refused: it would silently mean that no server is used.
void set_rpc(Options& options, const std::string& value) {
    if (value.empty()) throw UsageError("wants servers, host:port with commas between them");
    options.session.model.rpc = value;
}

// The parts of a list with commas between them, none of them empty.
std::vector<std::string> parts(const std::string& value, const std::string& wanted) {
    std::vector<std::string> all;
    for (std::size_t begin = 0; begin <= value.size();) {
        const std::size_t end = std::min(value.find(',', begin), value.size());
        all.push_back(value.substr(begin, end - begin));
        if (all.back().empty()) throw UsageError("needs " + wanted + ", not \"" + value + "\"");
        begin = end + 1;
    }
    return all;
}

void set_tensor_split(Options& options, const std::string& value) {
    const std::string wanted = "numbers with commas between them";
    std::vector<float>& split = options.session.model.tensor_split;
    split.clear();
    for (const std::string& part : parts(value, wanted)) split.push_back(real(part, wanted));
}

void add_adapters(Options& options, const std::string& value) {
    for (const std::string& path : parts(value, "files with commas between them"))
        options.session.model.lora.push_back({.path = path});
}

void add_scaled_adapters(Options& options, const std::string& value) {
    for (const std::string& one : parts(value, "FILE:SCALE, with commas between them")) {
        const std::size_t colon = one.rfind(':');
        if (colon == std::string::npos || colon == 0)
            throw UsageError("needs FILE:SCALE, not \"" + one + "\"");
        const float scale = real(one.substr(colon + 1), "a number behind the colon");
        options.session.model.lora.push_back({one.substr(0, colon), scale});
    }
}

// A Python library does the downloading. The console script that pip installs calls it and passes
// -m and -md to this executable instead.
void refuse_hub(Options&, const std::string& value) {
    throw UsageError(
        "needs the spec-cli that pip installs with the Python package; this one takes "
        "files: download " +
        value + " and give its path with -m or -md");
}

// The same console script turns schemas into grammars.
void refuse_schema(Options&, const std::string&) {
    throw UsageError(
        "needs the spec-cli that pip installs with the Python package; this one takes grammars, "
        "with --grammar");
}

void set_grammar(Options& options, const std::string& value) {
    if (value.empty()) throw UsageError("wants a grammar, not an empty text");
    options.generate.sampling.grammar = value;
}

void add_breaker(Options& options, const std::string& value) {
    if (!options.dry_breakers) options.dry_breakers.emplace();
    if (value != "none") options.dry_breakers->push_back(value);
}

void set_color(Options& options, const std::string& value) {
    if (value == "auto")
        options.color = Color::automatic;
    else if (value == "always" || value == "never")
        options.color = value == "always" ? Color::always : Color::never;
    else
        throw UsageError("must be auto, always or never, not \"" + value + "\"");
}

}  // namespace

const std::vector<Flag>& flags() {
    static const std::vector<Flag> all = {
        {{"-m", "--model"},
         "MODEL",
         "GGUF file (default: SmolLM2 of specllama[demo] or the bundled one)",
         [](Options& o, const std::string& v) { o.model = v; }},
        {{"-hf", "--hf-repo"},
         "NAME",
         "user/repo[:quant] of the Hugging Face Hub, instead of -m (Q4_K_M)",
         refuse_hub},
        {{"-p", "--prompt"},
         "TEXT",
         "prompt",
         [](Options& o, const std::string& v) { o.prompt = v; }},
        {{"-f", "--file"},
         "FILE",
         "prompt file, - is standard input; a last newline is left out",
         [](Options& o, const std::string& v) { o.file = v; }},
        {{"-e", "--escape"},
         "",
         "read \\n, \\t, \\\\, \\\" and \\x41 in prompt, stop texts and breakers",
         set(&Options::escapes)},
        {{"-n", "--n-predict", "--predict"},
         "N",
         "most tokens to generate; -1: until the context is full (256)",
         integer([](Options& o) -> int& { return o.generate.max_tokens.emplace(); })},
        {{"-r", "--stop"},
         "TEXT",
         "end before this text; may be repeated",
         [](Options& o, const std::string& v) { o.generate.stop.push_back(v); }},
        {{"--temp", "--temperature"},
         "T",
         "temperature; 0 is greedy (0)",
         number([](Options& o) -> double& { return o.generate.sampling.temperature; })},
        {{"--top-nsigma", "--top-n-sigma"},
         "N",
         "only logits this many deviations below the highest; 0: off (0)",
         number([](Options& o) -> double& { return o.generate.sampling.top_n_sigma; })},
        {{"--top-k"},
         "K",
         "only the K most likely tokens; 0 or -1: off (0)",
         integer([](Options& o) -> int& { return o.generate.sampling.top_k; })},
        {{"--typical", "--typical-p"},
         "P",
         "only tokens of average information, of together P; 1: off (1)",
         number([](Options& o) -> double& { return o.generate.sampling.typical_p; })},
        {{"--top-p"},
         "P",
         "only the likeliest tokens of together this probability; 1: off (1)",
         number([](Options& o) -> double& { return o.generate.sampling.top_p; })},
        {{"--min-p"},
         "P",
         "only tokens this likely, relative to the likeliest; 0: off (0)",
         number([](Options& o) -> double& { return o.generate.sampling.min_p; })},
        {{"--xtc-probability"},
         "P",
         "how often all top choices but the last are excluded; 0: off (0)",
         number([](Options& o) -> double& { return o.generate.sampling.xtc_probability; })},
        {{"--xtc-threshold"},
         "P",
         "how likely a top choice is at least (0.1)",
         number([](Options& o) -> double& { return o.generate.sampling.xtc_threshold; })},
        {{"--repeat-penalty"},
         "X",
         "make recent tokens less likely; 1: off (1)",
         number([](Options& o) -> double& { return o.generate.sampling.repeat_penalty; })},
        {{"--presence-penalty"},
         "X",
         "the same, by a term; 0: off (0)",
         number([](Options& o) -> double& { return o.generate.sampling.presence_penalty; })},
        {{"--frequency-penalty"},
         "X",
         "the same, for each occurrence; 0: off (0)",
         number([](Options& o) -> double& { return o.generate.sampling.frequency_penalty; })},
        {{"--repeat-last-n"},
         "N",
         "how many tokens are recent; -1: all (64)",
         integer([](Options& o) -> int& { return o.generate.sampling.penalty_last_n; })},
        {{"--dry-multiplier"},
         "X",
         "penalise tokens that lengthen a repetition; 0: off (0)",
         number([](Options& o) -> double& { return o.generate.sampling.dry_multiplier; })},
        {{"--dry-base"},
         "X",
         "how fast that grows with the repetition (1.75)",
         number([](Options& o) -> double& { return o.generate.sampling.dry_base; })},
        {{"--dry-allowed-length"},
         "N",
         "repetitions of fewer tokens are not penalised (2)",
         integer([](Options& o) -> int& { return o.generate.sampling.dry_allowed_length; })},
        {{"--dry-penalty-last-n"},
         "N",
         "how many tokens are looked at; -1: all (64)",
         integer([](Options& o) -> int& { return o.generate.sampling.dry_penalty_last_n; })},
        {{"--dry-sequence-breaker"},
         "TEXT",
         "a repetition ends there; may be repeated; or none (\\n : \" *)",
         add_breaker},
        {{"--ignore-eos"},
         "",
         "go on past the end of the text, up to -n",
         [](Options& o, const std::string&) { o.generate.sampling.ignore_eos = true; }},
        {{"--logprobs"},
         "K",
         "with --json: log-probabilities, also of the K likeliest tokens",
         set_logprobs},
        {{"--acceptance"},
         "RULE",
         "coupled: same seed, same text, whoever drafts; or rejection (coupled)",
         set_acceptance},
        {{"--lenience"},
         "L",
         "with rejection, below 1: accept more, at the text's cost (1)",
         number([](Options& o) -> double& { return o.generate.sampling.lenience; })},
        {{"--grammar"}, "GBNF", "grammar that the text must follow", set_grammar},
        {{"--grammar-file"},
         "FILE",
         "the same, from a file",
         [](Options& o, const std::string& v) { o.grammar_file = v; }},
        {{"-j", "--json-schema"}, "JSON", "the same, as a JSON schema", refuse_schema},
        {{"-jf", "--json-schema-file"}, "FILE", "the same, from a file", refuse_schema},
        {{"-s", "--seed"}, "N", "same seed, same text (a fresh one, shown by --stats)", set_seed},
        {{"-c", "--ctx-size"},
         "N",
         "tokens of context (the model's own, at most 8192)",
         integer([](Options& o) -> int& { return o.session.context.n_ctx; })},
        {{"-b", "--batch-size"},
         "N",
         "most tokens decoded at once (512)",
         integer([](Options& o) -> int& { return o.session.context.n_batch; })},
        {{"-t", "--threads"},
         "N",
         "threads (the performance cores)",
         integer([](Options& o) -> int& { return o.session.context.n_threads; })},
        {{"-ngl", "--n-gpu-layers", "--gpu-layers"},
         "N",
         "layers on the GPU; -1: all that fit, 0: do not use it (-1)",
         integer([](Options& o) -> int& { return o.session.model.n_gpu_layers.emplace(); })},
        {{"-ts", "--tensor-split"},
         "N,N,...",
         "parts of the layers for each GPU (as they fit)",
         set_tensor_split},
        {{"-ncmoe", "--n-cpu-moe"},
         "N",
         "layers whose experts stay in main memory (as few as needed)",
         integer([](Options& o) -> int& { return o.session.model.n_cpu_moe.emplace(); })},
        {{"-dev", "--device"},
         "NAMES",
         "GPUs that hold the layers, e.g. CUDA0,CUDA1; none (all)",
         [](Options& o, const std::string& v) { o.session.model.device = v; }},
        {{"--rpc"},
         "SERVERS",
         "RPC servers that hold layers, too: host:port,... (not encrypted)",
         set_rpc},
        {{"--lora"}, "FILES", "LoRA adapters of the model, with commas between them", add_adapters},
        {{"--lora-scaled"},
         "FILE:SCALE,...",
         "the same, and how much of each counts (1)",
         add_scaled_adapters},
        {{"-lm", "--load-mode"},
         "MODE",
         "how weights are read: none, mmap, mlock, mmap+mlock, dio (auto)",
         [](Options& o, const std::string& v) { o.session.model.load_mode = v; }},
        {{"--rope-scaling"},
         "HOW",
         "none, linear or yarn: for contexts longer than trained (the file's)",
         [](Options& o, const std::string& v) { o.session.context.rope.scaling = v; }},
        {{"--rope-scale"},
         "N",
         "by how much the context is stretched (the file's)",
         number([](Options& o) -> double& { return o.session.context.rope.scale.emplace(); })},
        {{"--rope-freq-base"},
         "N",
         "base of the frequencies (the file's)",
         number([](Options& o) -> double& { return o.session.context.rope.freq_base.emplace(); })},
        {{"--yarn-orig-ctx"},
         "N",
         "for yarn: tokens of context trained with (the file's)",
         integer(
             [](Options& o) -> int& { return o.session.context.rope.yarn_orig_ctx.emplace(); })},
        {{"-fa", "--flash-attn"}, "WHEN", "auto, on or off (auto)", set_flash_attention},
        {{"-kv", "--kv-type"},
         "TYPE",
         "type of the KV memory, e.g. f16 or q8_0 (f16)",
         [](Options& o, const std::string& v) { o.session.context.kv_type = v; }},
        {{"-md", "--draft-model", "--model-draft"},
         "MODEL",
         "GGUF file of a smaller model or a head that drafts",
         [](Options& o, const std::string& v) { o.session.draft_model.emplace().model.path = v; }},
        {{"-ngld", "--n-gpu-layers-draft", "--gpu-layers-draft"},
         "N",
         "layers of the draft model on the GPU (as -ngl)",
         integer([](Options& o) -> int& { return o.draft_n_gpu_layers.emplace(); })},
        {{"-devd", "--device-draft"},
         "NAMES",
         "GPUs that hold these (as -dev)",
         [](Options& o, const std::string& v) { o.draft_device = v; }},
        {{"-hfd", "--hf-repo-draft"},
         "NAME",
         "a draft model of the Hub, instead of -md",
         refuse_hub},
        {{"--draft"}, "WHO", "auto, mtp, ngram or none: who drafts without -md (auto)", set_draft},
        {{"--corpus"},
         "FILE",
         "file by specllama corpus build, to copy from",
         [](Options& o, const std::string& v) { o.session.corpus = v; }},
        {{"--spec-length"},
         "N",
         "most tokens drafted per round, 1 to 64, or auto: what pays (auto)",
         set_spec_length},
        {{"--spec-tree"},
         "K",
         "most guesses at a position, 1 to 8; off: 1; auto: chains so far (auto)",
         set_spec_tree},
        {{"--speculative-decoding"},
         "",
         "the same as --draft auto",
         [](Options& o, const std::string&) { o.draft = Draft::automatic; }},
        {{"--no-spec"},
         "",
         "the same as --draft none",
         [](Options& o, const std::string&) { o.draft = Draft::none; }},
        {{"--stats"}, "", "print statistics at the end", set(&Options::stats)},
        {{"--json"},
         "",
         "print a JSON object per line: chunks, then the result",
         set(&Options::json)},
        {{"--color"}, "WHEN", "auto, always or never: colour accepted drafts (auto)", set_color},
        {{"--list-devices"}, "", "list what llama.cpp can compute on", set(&Options::list_devices)},
        {{"-v", "--verbose"}, "", "show llama.cpp's log", set(&Options::verbose)},
        {{"-h", "--help"}, "", "show this help", set(&Options::help)},
        {{"--version"}, "", "show the version", set(&Options::version)},
    };
    return all;
}

const Flag* known(const std::string& name) {
    for (const Flag& flag : flags())
        for (const std::string_view one : flag.names)
            if (name == one) return &flag;
    return nullptr;
}

}  // namespace specllama::cli
