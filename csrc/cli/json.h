#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace specllama::cli {

// The JSON of a value.
std::string json(std::nullptr_t);
std::string json(bool truth);
std::string json(int number);
std::string json(std::uint64_t number);
std::string json(double number);
std::string json(std::string_view text);
inline std::string json(const char* text) { return json(std::string_view(text)); }

// A pair becomes an array of two.
template <typename First, typename Second>
std::string json(const std::pair<First, Second>& pair) {
    return "[" + json(pair.first) + ", " + json(pair.second) + "]";
}

template <typename Value>
std::string json(const std::optional<Value>& value) {
    return value ? json(*value) : json(nullptr);
}

template <typename Item>
std::string json(const std::vector<Item>& items) {
    std::string array;
    for (const Item& item : items) array.append(array.empty() ? "" : ", ").append(json(item));
    return "[" + array + "]";
}

// Writes one JSON object on one line, member by member:
//
//     JsonObject line;
//     line.add("token", 17).add("text", "a \"b\"");
//     std::cout << line.str() << '\n';
class JsonObject {
 public:
    template <typename Value>
    JsonObject& add(std::string_view key, const Value& value) {
        members_.append(members_.empty() ? "" : ", ")
            .append(json(key))
            .append(": ")
            .append(json(value));
        return *this;
    }

    std::string str() const { return "{" + members_ + "}"; }

 private:
    std::string members_;
};

inline std::string json(const JsonObject& object) { return object.str(); }

}  // namespace specllama::cli
