#include "specllama/option.h"

#include <cmath>

#include "specllama/error.h"

namespace specllama {

namespace {

std::string in_words(double number) {
    if (std::isfinite(number) && number == std::floor(number) && std::abs(number) < 1e11)
        return std::to_string(static_cast<long long>(number));
    std::ostringstream text;
    text << number;
    return text.str();
}

}  // namespace

std::string listed(const std::string& words) {
    std::istringstream stream(words);
    std::string text, word, last;
    while (stream >> word) {
        if (!last.empty()) text += (text.empty() ? "" : ", ") + last;
        last = word;
    }
    return text.empty() ? last : text + " or " + last;
}

std::string range_text(const OptionInfo& info) {
    const std::string low = in_words(info.low);
    if (std::isinf(info.low)) return "";
    if (std::isinf(info.high)) return info.above_low ? "more than " + low : low + " or more";
    const std::string high = in_words(info.high);
    return info.above_low ? "more than " + low + " and at most " + high
                          : "from " + low + " to " + high;
}

void check_value(const OptionInfo& info, double value) {
    if (std::isfinite(value) && value <= info.high &&
        (info.above_low ? value > info.low : value >= info.low))
        return;
    std::string range = range_text(info);
    if (range.empty()) range = "a finite number";
    if (*info.special != '\0') range += " (" + std::string(info.special) + ")";
    throw InvalidArgument(std::string(info.name) + " must be " + range + ", not " +
                          in_words(value) + ".");
}

void check_value(const OptionInfo& info, const std::string& value) {
    if (*info.choices == '\0') return;
    const std::string padded = " " + std::string(info.choices) + " ";
    if (value.find(' ') == std::string::npos && padded.find(" " + value + " ") != std::string::npos)
        return;
    throw InvalidArgument(std::string(info.name) + " must be " + listed(info.choices) + ", not \"" +
                          value + "\".");
}

}  // namespace specllama
