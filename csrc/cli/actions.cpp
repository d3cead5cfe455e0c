#include "cli/actions.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <vector>

namespace specllama::cli {

namespace {

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

}  // namespace

Action integer(const std::function<int&(Options&)>& member) {
    return [member](Options& options, const std::string& value) { member(options) = whole(value); };
}

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

// The same console script runs spec-cli inside Python, where llguidance is.
void refuse_schema(Options&, const std::string&) {
    throw UsageError(
        "needs the spec-cli that pip installs with the Python package; this one takes GBNF, with "
        "--grammar");
}

void set_grammar(Options& options, const std::string& value) {
    if (value.empty()) throw UsageError("wants a grammar, not an empty text");
    options.generate.sampling.grammar = value;
    if (value.starts_with("%llguidance"))
        options.generate.sampling.grammar_syntax = GrammarSyntax::lark;
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

}  // namespace specllama::cli
