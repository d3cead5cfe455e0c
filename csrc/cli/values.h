#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cli/options.h"

namespace specllama::cli {

// These functions read the values of flags. All throw a UsageError whose message continues a
// sentence that begins with the flag's name.

void read_value(const OptionInfo& info, const std::string& text, int& value);
void read_value(const OptionInfo& info, const std::string& text, std::uint64_t& value);
void read_value(const OptionInfo& info, const std::string& text, double& value);
void read_value(const OptionInfo& info, const std::string& text, std::string& value);
// Adds one text; "none": no texts. The first text replaces the default texts.
void read_value(const OptionInfo& info, const std::string& text, std::vector<std::string>& value);
void read_value(const OptionInfo& info, const std::string& text, std::vector<float>& value);
void read_value(const OptionInfo& info, const std::string& text, std::vector<LoraAdapter>& value);
void read_scaled_adapters(const std::string& text, std::vector<LoraAdapter>& value);

// The index of a word in the option's choices.
int read_choice(const OptionInfo& info, const std::string& text);

// Reads an option of a struct (see visit_options). "auto" and a seed of -1 reset an optional value.
template <typename Value>
void read_any(const OptionInfo& info, const std::string& text, Value& value) {
    if constexpr (std::is_same_v<Value, bool>)
        value = !std::string_view(info.flags).starts_with("--no-");
    else if constexpr (std::is_enum_v<Value>)
        value = static_cast<Value>(read_choice(info, text));
    else if constexpr (is_optional<Value>) {
        using Inner = typename Value::value_type;
        const bool number = std::is_integral_v<Inner>;
        if (number && (text == "auto" || (text == "-1" && std::is_unsigned_v<Inner>)))
            value.reset();
        else
            read_any(info, text, value.emplace());
    } else if constexpr (requires { read_value(info, text, value); }) {
        read_value(info, text, value);
    } else {
        throw UsageError("cannot be given here");  // options of such types have no flag
    }
}

}  // namespace specllama::cli
