#include "cli/options.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <sstream>
#include <string_view>

#include "cli/escapes.h"
#include "cli/flags.h"

namespace specllama::cli {

Options parse(int argc, const char* const* argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        std::string name = argv[i];
        if (name == "-") {
            options.file = name;
            continue;
        }
        if (name.empty() || name[0] != '-')
            throw UsageError("What is \"" + name + "\" for? A prompt is given with -p.");
        // --name=value
        std::optional<std::string> value;
        if (const auto equals = name.find('=');
            name.starts_with("--") && equals != std::string::npos) {
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
    if (options.grammar_file && !options.generate.sampling.grammar.empty())
        throw UsageError("Give the grammar as a text or in a file, not both.");
    std::vector<std::string>& breakers = options.generate.sampling.dry_sequence_breakers;
    if (options.dry_breakers) breakers = *options.dry_breakers;
    if (options.escapes) {
        if (options.prompt) options.prompt = unescaped(*options.prompt);
        for (std::string& stop : options.generate.stop) stop = unescaped(stop);
        for (std::string& breaker : breakers) breaker = unescaped(breaker);
    }
    if (options.generate.sampling.logprobs >= 0 && !options.json)
        throw UsageError("--logprobs are shown by --json alone; give it, too.");
    return options;
}

// Only whole words are replaced, with a punctuation mark after them or without, so that no part of
// a path is touched.
std::string with_flags(const std::string& message) {
    static const std::map<std::string_view, std::string_view> kNames = {
        {"max_tokens", "-n"},
        {"n_ctx", "-c"},
        {"n_batch", "-b"},
        {"n_threads", "-t"},
        {"n_gpu_layers", "-ngl"},
        {"draft_n_gpu_layers", "-ngld"},
        {"n_cpu_moe", "-ncmoe"},
        {"tensor_split", "-ts"},
        {"draft_device", "-devd"},
        {"temperature", "--temp"},
        {"lenience", "--lenience"},
        {"logprobs", "--logprobs"},
        {"penalty_last_n", "--repeat-last-n"},
        {"dry_sequence_breakers", "--dry-sequence-breaker"},
    };
    std::istringstream words(message);
    std::string result;
    for (std::string word; std::getline(words, word, ' ');) {
        const std::size_t end = word.find_last_not_of(".,;:") + 1;
        const std::string name = word.substr(0, end);
        std::string flag = "--" + name;
        std::ranges::replace(flag, '_', '-');
        if (const auto found = kNames.find(name); found != kNames.end())
            flag = found->second;
        else if (name.find('_') == std::string::npos || known(flag) == nullptr)
            flag = name;
        result += (result.empty() ? "" : " ") + flag + word.substr(end);
    }
    return result;
}

std::string help_text() {
    std::string text =
        "usage: spec-cli [-m MODEL] [-p TEXT | -f FILE | -] [options]\n"
        "\n"
        "Continues a prompt, speculating with n-grams or a draft model: the same text, sooner.\n"
        "Without a prompt and a model, the bundled model continues a built-in prompt.\n"
        "\n";
    for (const Flag& flag : flags()) {
        std::string left = "  ";
        for (const std::string_view name : flag.names) {
            if (left.size() > 2) left += ", ";
            left += name;
        }
        if (!flag.value.empty()) left.append(" ").append(flag.value);
        left.resize(std::max<std::size_t>(left.size() + 2, 30), ' ');
        text.append(left).append(flag.help).append("\n");
    }
    return text;
}

}  // namespace specllama::cli
