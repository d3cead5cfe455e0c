#include "cli/options.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <sstream>
#include <string_view>

#include "cli/flags.h"

namespace specllama::cli {

namespace {

constexpr std::string_view kEscapes = "nrt'\"\\";
constexpr std::string_view kMeanings = "\n\r\t'\"\\";

// Replaces the escapes
// , \r, \t, \', \", \\ and \x41 (one byte, two hexadecimal digits) in a text, as in llama.cpp's
// programs. Any other backslash stays.
std::string unescaped(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        std::size_t n_taken = 1;
        char meant = text[0];
        if (meant == '\\' && text.size() > 1) {
            if (const auto at = kEscapes.find(text[1]); at != std::string_view::npos) {
                meant = kMeanings[at];
                n_taken = 2;
            } else if (text[1] == 'x' && text.size() > 3) {
                unsigned byte = 0;
                const char* end = text.data() + 4;
                if (std::from_chars(text.data() + 2, end, byte, 16).ptr == end) {
                    meant = static_cast<char>(byte);
                    n_taken = 4;
                }
            }
        }
        result += meant;
        text.remove_prefix(n_taken);
    }
    return result;
}

}  // namespace

void set_grammar(Options& options, const std::string& grammar) {
    if (grammar.empty()) throw UsageError("needs a grammar, not an empty text");
    options.generate.sampling.grammar = grammar;
    if (grammar.starts_with("%llguidance"))
        options.generate.sampling.grammar_syntax = GrammarSyntax::lark;
}

Options parse(int argc, const char* const* argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        std::string name = argv[i];
        if (name == "-") {
            options.file = name;
            continue;
        }
        if (name.empty() || name[0] != '-')
            throw UsageError(
                "\"" + name + "\" is not an option; " +
                (name.ends_with(".gguf") ? "name a model with -m." : "give a prompt with -p."));
        // --name=value, or -n=value
        std::optional<std::string> value;
        if (const auto equals = name.find('='); equals != std::string::npos) {
            value = name.substr(equals + 1);
            name.erase(equals);
        }
        const Flag* named = known(name);
        if (named == nullptr)
            throw UsageError("There is no option " + name + "; see spec-cli --help.");
        const Flag& flag = *named;
        if (flag.value.empty() && value) throw UsageError(name + " takes no value.");
        if (!flag.value.empty() && !value) {
            if (i + 1 == argc) throw UsageError(name + " needs a value; see spec-cli --help.");
            value = argv[++i];
        }
        try {
            flag.action(options, value.value_or(""));
        } catch (const UsageError& error) {
            throw UsageError(name + " " + error.what() + ".");
        }
    }
    if (options.prompt && options.file)
        throw UsageError("Give the prompt with -p or with -f, not both.");
    if (options.system && options.raw)
        throw UsageError(
            "-sys needs the chat template, which -no-cnv turns off; leave out one of them.");
    if (!options.media.empty() && options.raw)
        throw UsageError(
            "--image needs the chat template, which -no-cnv turns off; leave out one of them.");
    if (!options.media.empty() && options.session.media.mmproj.empty())
        throw UsageError("--image needs the model's projector; give it with -mm.");
    if (options.grammar_file && !options.generate.sampling.grammar.empty())
        throw UsageError("Give the grammar as a text or in a file, not both.");
    if (options.escapes) {
        if (options.prompt) options.prompt = unescaped(*options.prompt);
        for (std::string& stop : options.generate.stop) stop = unescaped(stop);
        for (std::string& breaker : options.generate.sampling.dry_sequence_breakers)
            breaker = unescaped(breaker);
    }
    if (options.generate.sampling.logprobs >= 0 && !options.json)
        throw UsageError("--logprobs needs --json, which shows them.");
    return options;
}

// Replaces only whole words, with or without a punctuation mark after them, so that paths stay
// unchanged.
std::string with_flags(const std::string& message) {
    std::istringstream words(message);
    std::string result;
    for (std::string word; std::getline(words, word, ' ');) {
        const std::size_t end = word.find_last_not_of(".,;:") + 1;
        std::string name = word.substr(0, end);
        // Names without "_" may also be plain words, except at the beginning of the sentence.
        if (name.find('_') != std::string::npos || result.empty())
            for (const Flag& flag : flags())
                if (name == flag.option) name = flag.names.front();
        result += (result.empty() ? "" : " ") + name + word.substr(end);
    }
    return result;
}

std::string help_text() {
    constexpr std::size_t kIndent = 30;
    constexpr std::size_t kWidth = 100;
    std::string text =
        "usage: spec-cli [-m MODEL] [-p TEXT | -f FILE | -] [options]\n"
        "\n"
        "Answers one prompt, with speculation. Models without a chat template continue the "
        "prompt;\n"
        "with -no-cnv, all models do. Without -p, -f and -m, the bundled model continues a "
        "built-in\n"
        "prompt.\n"
        "\n"
        "examples:\n"
        "  spec-cli -m model.gguf -p \"Why is the sky blue?\"\n"
        "  spec-cli -m model.gguf -f question.txt -n 200 --stats\n"
        "\n"
        "options:\n";
    for (const Flag& flag : flags()) {
        std::string line = "  ";
        for (const std::string& name : flag.names) line += (line.size() > 2 ? ", " : "") + name;
        if (!flag.value.empty()) line += " " + flag.value;
        std::istringstream words(flag.help);
        bool fresh = false;  // the line has no word of the help yet
        const auto indent = [&] {
            line.resize(kIndent, ' ');
            fresh = true;
        };
        const auto end_line = [&] {
            text += line + '\n';
            line.clear();
            indent();
        };
        if (line.size() + 2 > kIndent)
            end_line();
        else
            indent();
        for (std::string word; words >> word; fresh = false) {
            if (line.size() + 1 + word.size() > kWidth) end_line();
            line += (fresh ? "" : " ") + word;
        }
        text += line + '\n';
    }
    return text;
}

}  // namespace specllama::cli
