#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace specllama {

// What is known of an option besides its type: one line of the table that each struct of options
// has below it. Whatever shows, reads or checks options goes through these tables: the bindings,
// the flags of all commands, the fields of the server's requests, the documents.
struct OptionInfo {
    // In C++ and in Python. Unique within a table, structs inside the struct included.
    const char* name;
    // What the option does. The first sentence begins with a noun or a verb, and is the help line.
    // "": the option is the library's own, and users do not give it.
    const char* help = "";
    // Bounds of a number, themselves allowed; numbers without bounds are finite all the same.
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool above_low = false;  // `low` itself is not allowed
    // Values of a text or of an enum (in its order), with blanks between them; "": any text.
    const char* choices = "";
    // What some values mean: "0: off; -1: unlimited".
    const char* special = "";
    // What is done if the option is left out, where the default value does not say it.
    const char* unset = "";
    // Words that stand for numbers on command lines and in Python: "off=1".
    const char* words = "";
    // Flags of command lines, with blanks between them; "": the option has none. The flag of a
    // switch turns it on, or off if it begins with "--no-".
    const char* flags = "";
    // What the value is called in the help of commands.
    const char* value = "N";
    // Field of the server's requests; "": it has none that holds the plain value.
    const char* field = "";
    // Names of the same option in other programs, which the server reads, too.
    const char* aliases = "";
};

// The values allowed, in words: "from 0 to 1"; "": any.
std::string range_text(const OptionInfo& info);

// "a, b or c", of words with blanks between them.
std::string listed(const std::string& words);

// Throw InvalidArgument for a value that is not allowed; the message begins with the name.
void check_value(const OptionInfo& info, double value);
void check_value(const OptionInfo& info, const std::string& value);

template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;

namespace detail {

// What the tables call: for an option, or for a struct of options inside.
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

// Calls visit(info, get) for each option of a struct and of the structs inside it; get(options) is
// a reference to its value.
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

// What an option is by default, in words, with what is special: "0, off", "64; -1: all".
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
