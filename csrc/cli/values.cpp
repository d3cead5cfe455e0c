#include "cli/values.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <sstream>

#include "cli/options.h"
#include "specllama/generate_options.h"

namespace specllama::cli {

namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

// The words that replace numbers, from info.words ("off=1 all=-1"), and "auto" if the option
// accepts it.
std::string in_place_of_numbers(const OptionInfo& info) {
    std::string words = std::string_view(info.unset) == "auto" ? "auto, " : "";
    std::istringstream stream(info.words);
    for (std::string word; stream >> word;) words += word.substr(0, word.find('=')) + ", ";
    if (!words.empty()) words.replace(words.size() - 2, 2, " or ");
    return words;
}

template <typename Number>
void read_whole(const OptionInfo& info, const std::string& text, const std::string& wanted,
                Number& value) {
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc{} && at == end) return;
    if (at == end && error == std::errc::result_out_of_range) throw UsageError("cannot be " + text);
    throw UsageError("needs " + in_place_of_numbers(info) + wanted + ", not " + quoted(text));
}

// The parts of a comma-separated list, none of them empty.
std::vector<std::string> parts(const std::string& text, const std::string& wanted) {
    std::vector<std::string> all;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        all.push_back(text.substr(begin, end - begin));
        if (all.back().empty()) throw UsageError("needs " + wanted + ", not " + quoted(text));
        begin = end + 1;
    }
    return all;
}

double real(const std::string& text, const std::string& wanted) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') throw UsageError("needs " + wanted + ", not " + quoted(text));
    return number;
}

}  // namespace

void read_value(const OptionInfo& info, const std::string& text, int& value) {
    std::istringstream words(info.words);
    for (std::string word; words >> word;)
        if (word.starts_with(text + "=")) {
            value = std::stoi(word.substr(text.size() + 1));
            return;
        }
    read_whole(info, text, "a whole number", value);
}

void read_value(const OptionInfo& info, const std::string& text, std::uint64_t& value) {
    read_whole(info, text, "a whole number from -1 (a fresh one) to 2^64 - 1", value);
}

void read_value(const OptionInfo&, const std::string& text, double& value) {
    value = real(text, "a number");
}

void read_value(const OptionInfo&, const std::string& text, std::string& value) {
    if (text.empty()) throw UsageError("is empty; give a value, or leave it out");
    value = text;
}

void read_value(const OptionInfo& info, const std::string& text, std::vector<std::string>& value) {
    const bool by_default = std::string_view(info.name) == "dry_sequence_breakers" &&
                            value == SamplingOptions().dry_sequence_breakers;
    if (by_default || text == "none") value.clear();
    if (text != "none") value.push_back(text);
}

void read_value(const OptionInfo&, const std::string& text, std::vector<float>& value) {
    const std::string wanted = "numbers with commas between them";
    value.clear();
    for (const std::string& part : parts(text, wanted))
        value.push_back(static_cast<float>(real(part, wanted)));
}

void read_value(const OptionInfo&, const std::string& text, std::vector<LoraAdapter>& value) {
    for (const std::string& path : parts(text, "files with commas between them"))
        value.push_back({.path = path});
}

void read_scaled_adapters(const std::string& text, std::vector<LoraAdapter>& value) {
    for (const std::string& one : parts(text, "FILE:SCALE, with commas between them")) {
        const std::size_t colon = one.rfind(':');
        if (colon == std::string::npos || colon == 0)
            throw UsageError("needs FILE:SCALE, not " + quoted(one));
        const double scale = real(one.substr(colon + 1), "a number after the colon");
        value.push_back({one.substr(0, colon), static_cast<float>(scale)});
    }
}

int read_choice(const OptionInfo& info, const std::string& text) {
    std::istringstream stream(info.choices);
    std::string word;
    for (int i = 0; stream >> word; ++i)
        if (word == text) return i;
    throw UsageError("must be " + listed(info.choices) + ", not " + quoted(text));
}

}  // namespace specllama::cli
