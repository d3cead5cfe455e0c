#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace specllama {

// Properties of an option besides its type: one line of the table below each struct of options. The
// bindings, the commands' flags, the fields of the server's requests and the documents are all made
// from these tables.
struct OptionInfo {
    // Name in C++ and Python. Unique within a table, nested structs included.
    const char* name;
    // What the option does. The first sentence begins with a noun or a verb, and is the help line.
    // "": an internal option that users do not set.
    const char* help = "";
    // Inclusive bounds of a number. A number without bounds must still be finite.
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool above_low = false;  // `low` itself is not allowed
    // Allowed values of a text or an enum (in its order), separated by blanks; "": any text.
    const char* choices = "";
    // Values with a special meaning, e.g. "0: off; -1: unlimited".
    const char* special = "";
    // The default in words, where the default value does not show it.
    const char* unset = "";
    // Words accepted for numbers on command lines and in Python, e.g. "off=1".
    const char* words = "";
    // Command-line flags, separated by blanks; "": none. The flag of a switch turns it on, or off
    // if it begins with "--no-".
    const char* flags = "";
    // Placeholder of the value in the commands' help.
    const char* value = "N";
    // Field of the server's requests that holds the plain value; "": none.
    const char* field = "";
    // Names of the option in other programs; the server accepts them, too.
    const char* aliases = "";
};

// The allowed values in words, e.g. "from 0 to 1"; "": any.
std::string range_text(const OptionInfo& info);

// Formats words separated by blanks as "a, b or c".
std::string listed(const std::string& words);

// Throw InvalidArgument for a value that is not allowed; the message begins with the name.
void check_value(const OptionInfo& info, double value);
void check_value(const OptionInfo& info, const std::string& value);

template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;

namespace detail {

// The tables call it for each option and for each nested struct of options.
template <typename Visit, typename Path>
struct OptionWalk {
    Visit& visit;
    Path path;

    template <typename Member>
    void operator()(Member member, const OptionInfo& info) const {
        visit(info, [=, *this](auto& options) -> auto& { return path(options).*member; });
    }
    template <typename Struct, typename Inner>
    void operator()(Inner Struct::*member) const {
        const auto get = [=, *this](auto& options) -> auto& { return path(options).*member; };
        list_options(static_cast<const Inner*>(nullptr),
                     OptionWalk<Visit, decltype(get)>{visit, get});
    }
};

}  // namespace detail

// Calls visit(info, get) for each option of a struct and its nested structs. get(options) returns a
// reference to the value.
template <typename Options, typename Visit>
void visit_options(Visit visit) {
    const auto itself = [](auto& options) -> auto& { return options; };
    list_options(static_cast<const Options*>(nullptr),
                 detail::OptionWalk<Visit, decltype(itself)>{visit, itself});
}

// Checks all numbers and choices of a struct of options. Throws InvalidArgument.
template <typename Options>
void check_options(const Options& options) {
    visit_options<Options>([&](const OptionInfo& info, auto get) {
        const auto check = [&](const auto& value) {
            using Value = std::remove_cvref_t<decltype(value)>;
            if constexpr (std::is_arithmetic_v<Value> && !std::same_as<Value, bool>)
                check_value(info, static_cast<double>(value));
            else if constexpr (std::same_as<Value, std::string>)
                check_value(info, value);
        };
        const auto& value = get(options);
        if constexpr (!is_optional<std::remove_cvref_t<decltype(value)>>)
            check(value);
        else if (value)
            check(*value);
    });
}

// The default in words with the special values, e.g. "0, off" or "64; -1: all".
template <typename Value>
std::string default_text(const OptionInfo& info, const Value& value) {
    const std::string special = info.special;
    std::string text = info.unset;
    if (text.empty()) {
        std::ostringstream stream;
        if constexpr (std::same_as<Value, bool>)
            stream << (value ? "on" : "off");
        else if constexpr (requires { stream << value; })
            stream << value;
        else if constexpr (std::is_enum_v<Value>) {
            std::istringstream choices(info.choices);
            for (int i = 0; i <= static_cast<int>(value); ++i) choices >> text;
        }
        text += stream.str();
    }
    if (special.ends_with(": " + text)) return text;
    if (special.starts_with(text + ": ")) return text + ", " + special.substr(text.size() + 2);
    return special.empty() ? text : text + "; " + special;
}

}  // namespace specllama
