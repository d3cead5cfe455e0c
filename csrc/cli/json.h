#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace specllama::cli {

// Writes one JSON object on one line, member by member:
//
//     JsonObject line;
//     line.add("token", 17).add("text", "a \"b\"");
//     std::cout << line.str() << '\n';
class JsonObject {
 public:
    JsonObject& add(std::string_view key, std::string_view text);
    JsonObject& add(std::string_view key, const char* text);
    JsonObject& add(std::string_view key, double number);
    JsonObject& add(std::string_view key, int number);
    JsonObject& add(std::string_view key, std::uint64_t number);
    JsonObject& add(std::string_view key, bool truth);
    JsonObject& add(std::string_view key, const JsonObject& object);
    JsonObject& add_null(std::string_view key);

    // `items`: an array of numbers or pairs of numbers.
    template <typename Items, typename Write>
    JsonObject& add_array(std::string_view key, const Items& items, Write write) {
        std::string array;
        for (const auto& item : items) array.append(array.empty() ? "" : ", ").append(write(item));
        return add_raw(key, "[" + array + "]");
    }

    std::string str() const { return "{" + members_ + "}"; }

 private:
    JsonObject& add_raw(std::string_view key, std::string_view value);

    std::string members_;
};

}  // namespace specllama::cli
