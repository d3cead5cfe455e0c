#include "cli/flags.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "cli/values.h"

namespace specllama::cli {

namespace {

std::vector<std::string> words(const std::string& text) {
    std::istringstream stream(text);
    return {std::istream_iterator<std::string>(stream), {}};
}

Flag flag(const char* names, const char* value, const char* help, Action action) {
    return {words(names), value, help, "", std::move(action)};
}

Flag flag(const char* names, const char* help, bool Options::*member) {
    return flag(names, "", help, [=](Options& o, const std::string&) { o.*member = true; });
}

Action set(std::optional<std::string> Options::*member) {
    return [=](Options& o, const std::string& text) { o.*member = text; };
}

Action set_draft(const char* draft) {
    return [=](Options& o, const std::string&) { o.draft = draft; };
}

// Only Python can download models and use llguidance. The console script of the Python package
// replaces these flags, or runs spec-cli inside Python.
Action refuse(const char* instead) {
    return [=](Options&, const std::string&) {
        throw UsageError(
            std::string("needs the spec-cli that pip installs with the Python package; ") +
            instead);
    };
}

constexpr const char* kFiles =
    "this one takes files: download the model and give its path with -m or -md";
constexpr const char* kGbnf = "this one takes GBNF, with --grammar";

constexpr OptionInfo kDraft = {.name = "draft", .choices = "auto mtp ngram none"};
constexpr OptionInfo kColor = {.name = "color", .choices = "auto on off"};

std::vector<Flag> own_flags() {
    return {
        flag(
            "-m --model", "MODEL",
            "model, a GGUF file (default: $SPECLLAMA_MODEL; else SmolLM2-135M, if it is installed; "
            "else the bundled model)",
            [](Options& o, const std::string& v) {
                read_value({"model"}, v, o.session.model.path);
            }),
        flag("-hf --hf-repo", "NAME",
             "model user/repo[:quant] from the Hugging Face Hub, instead of -m (quant: Q4_K_M "
             "unless it is given)",
             refuse(kFiles)),
        flag("-md --draft-model --model-draft", "MODEL",
             "draft model: GGUF file of a smaller model or a head",
             [](Options& o, const std::string& v) {
                 read_value({"draft"}, v, o.session.draft.path);
             }),
        flag(
            "-hfd --hf-repo-draft", "NAME",
            "draft model from the Hub, instead of -md; auto: the head in the repository of -hf, of "
            "any size (default: that head, if it is smaller than a tenth of the model)",
            refuse(kFiles)),
        flag("--draft", "{auto,mtp,ngram,none}",
             "drafter used without -md: multi-token prediction by the model (mtp), copies from the "
             "text (ngram), or no speculation (none) (default: auto)",
             [](Options& o, const std::string& v) {
                 read_choice(kDraft, v);
                 o.draft = v;
             }),
        flag("--speculative-decoding", "", "same as --draft auto", set_draft("auto")),
        flag("--no-spec", "", "same as --draft none", set_draft("none")),
        flag("-p --prompt", "TEXT", "prompt", set(&Options::prompt)),
        flag("-f --file", "FILE", "prompt file; -: standard input; a newline at its end is dropped",
             set(&Options::file)),
        flag("-sys --system-prompt", "TEXT", "system message (for models with a chat template)",
             set(&Options::system)),
        flag("--image --audio", "FILE",
             "image or sound to put before the prompt, for a vision or audio model (-mm) with a "
             "chat template; may be repeated",
             [](Options& o, const std::string& v) {
                 read_value({"image"}, v, o.media.emplace_back());
             }),
        flag("-no-cnv --no-conversation --raw",
             "continue the prompt as it is, without the chat template", &Options::raw),
        flag(
            "-e --escape",
            R"(read \n, \t, \\, \" and \x41 as escapes in prompt, stop texts and sequence breakers)",
            &Options::escapes),
        flag("--grammar", "GRAMMAR", "grammar of the output, in GBNF or llguidance's Lark",
             set_grammar),
        flag("--grammar-file", "FILE", "file with the grammar", set(&Options::grammar_file)),
        flag("-j --json-schema", "JSON", "JSON schema of the output", refuse(kGbnf)),
        flag("-jf --json-schema-file", "FILE", "file with the schema", refuse(kGbnf)),
        flag("--regex", "REGEX", "regular expression of the whole output", refuse(kGbnf)),
        flag("--lora-scaled", "FILE:SCALE,...", "LoRA adapters, each with a scale (1: as trained)",
             [](Options& o, const std::string& v) {
                 read_scaled_adapters(v, o.session.model.lora);
             }),
        flag("--stats", "print statistics at the end", &Options::stats),
        flag("--json", "print a JSON object per line: chunks, then the result", &Options::json),
        flag("--color", "{auto,on,off}",
             "colour accepted drafts green (default: auto, in a terminal)",
             [](Options& o, const std::string& v) {
                 o.color = static_cast<Switch>(read_choice(kColor, v));
             }),
        flag("--list-devices", "list the devices that llama.cpp can use", &Options::list_devices),
        flag("-v --verbose", "show llama.cpp's log", &Options::verbose),
        flag("-h --help", "show this help", &Options::help),
        flag("--version", "show the version", &Options::version),
    };
}

// The first sentence of an option's help, in lower case unless it begins with a name. repeats: the
// flag may be given several times.
std::string brief(const OptionInfo& info, const std::string& by_default, bool repeats) {
    std::string text = info.help;
    text.erase(std::min(text.find(". "), text.size() - 1));
    const auto is_small = [](unsigned char c) { return std::isupper(c) == 0; };
    const std::string_view word = std::string_view(text).substr(0, text.find(' '));
    if (std::ranges::all_of(word.substr(1), is_small))
        text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
    // The flag of a switch that is on turns it off.
    if (by_default == "on" && std::string_view(info.flags).starts_with("--no-"))
        return "do not " + text;
    return text + (repeats ? "; may be repeated" : "") + " (default: " + by_default + ")";
}

// How the help shows what a flag takes.
std::string value_name(const OptionInfo& info) {
    std::string names = info.choices;
    if (names.empty()) return info.value;
    std::ranges::replace(names, ' ', ',');
    return "{" + names + "}";
}

// Adds the flags of a struct of options. part: its member in the program's options.
template <typename Struct>
void add_options(Struct Options::*part, std::vector<Flag>& all) {
    const Struct defaults;
    visit_options<Struct>([&](const OptionInfo& info, auto get) {
        const std::string_view name = info.name;
        // This program continues one text at a time, without a chat, which thoughts need.
        if (*info.flags == '\0' || name == "reasoning_budget" || name == "n_seq") return;
        using Value = std::remove_cvref_t<decltype(get(defaults))>;
        constexpr bool kSwitch = std::is_same_v<Value, bool>;
        constexpr bool kRepeats = std::is_same_v<Value, std::vector<std::string>>;
        all.push_back({words(info.flags), kSwitch ? "" : value_name(info),
                       brief(info, default_text(info, get(defaults)), kRepeats), info.name,
                       [=](Options& options, const std::string& text) {
                           read_any(info, text, get(options.*part));
                       }});
    });
}

}  // namespace

const std::vector<Flag>& flags() {
    static const std::vector<Flag> all = [] {
        std::vector<Flag> made = own_flags();
        add_options(&Options::generate, made);
        add_options(&Options::session, made);
        return made;
    }();
    return all;
}

const Flag* known(const std::string& name) {
    const auto found = std::ranges::find_if(
        flags(), [&](const Flag& flag) { return std::ranges::count(flag.names, name) > 0; });
    return found == flags().end() ? nullptr : &*found;
}

}  // namespace specllama::cli
