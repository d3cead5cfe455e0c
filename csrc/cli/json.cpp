#include "cli/json.h"

#include <cstdio>

namespace specllama::cli {

std::string json(std::nullptr_t) { return "null"; }

std::string json(bool truth) { return truth ? "true" : "false"; }

std::string json(int number) { return std::to_string(number); }

std::string json(std::uint64_t number) { return std::to_string(number); }

std::string json(double number) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.6g", number);
    return text;
}

std::string json(std::string_view text) {
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

}  // namespace specllama::cli
