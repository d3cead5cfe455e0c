#include "cli/escapes.h"

#include <charconv>
#include <cstddef>

namespace specllama::cli {

namespace {

constexpr std::string_view kNames = "nrt'\"\\";
constexpr std::string_view kMeanings = "\n\r\t'\"\\";

}  // namespace

std::string unescaped(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        std::size_t n_taken = 1;
        char meant = text[0];
        if (meant == '\\' && text.size() > 1) {
            if (const auto at = kNames.find(text[1]); at != std::string_view::npos) {
                meant = kMeanings[at];
                n_taken = 2;
            } else if (text[1] == 'x' && text.size() > 3) {
                unsigned byte = 0;
                const char* end = text.data() + 4;
                if (const auto [stop, error] = std::from_chars(text.data() + 2, end, byte, 16);
                    stop == end) {
                    meant = static_cast<char>(byte);
                    n_taken = 4;
                }
            }
        }
        result += meant;
        text.remove_prefix(n_taken);
    }
    return result;
}

}  // namespace specllama::cli
