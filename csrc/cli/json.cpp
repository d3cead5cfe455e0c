#include "cli/json.h"

#include <cstdio>

namespace specllama::cli {

namespace {

std::string quote(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        switch (c) {
            case '"':
                out += "\\\"";
                break;
            case '\\':
                out += "\\\\";
                break;
            case '\n':
                out += "\\n";
                break;
            case '\r':
                out += "\\r";
                break;
            case '\t':
                out += "\\t";
                break;
            default:
                if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
                    char escape[8];
                    std::snprintf(escape, sizeof(escape), "\\u%04x", c);
                    out += escape;
                } else {
                    out += c;
                }
        }
    }
    return out + "\"";
}

}  // namespace

JsonObject& JsonObject::add_raw(std::string_view key, std::string_view value) {
    members_.append(members_.empty() ? "" : ", ").append(quote(key)).append(": ").append(value);
    return *this;
}

JsonObject& JsonObject::add(std::string_view key, std::string_view text) {
    return add_raw(key, quote(text));
}

JsonObject& JsonObject::add(std::string_view key, const char* text) {
    return add(key, std::string_view(text));
}

JsonObject& JsonObject::add(std::string_view key, double number) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.6g", number);
    return add_raw(key, text);
}

JsonObject& JsonObject::add(std::string_view key, int number) {
    return add_raw(key, std::to_string(number));
}

JsonObject& JsonObject::add(std::string_view key, std::uint64_t number) {
    return add_raw(key, std::to_string(number));
}

JsonObject& JsonObject::add(std::string_view key, bool truth) {
    return add_raw(key, truth ? "true" : "false");
}

JsonObject& JsonObject::add(std::string_view key, const JsonObject& object) {
    return add_raw(key, object.str());
}

JsonObject& JsonObject::add_null(std::string_view key) { return add_raw(key, "null"); }

}  // namespace specllama::cli
