#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace specllama {

// Appends `bytes` to `out` as valid UTF-8 and returns the number of bytes used. Bytes that cannot
// become a character are replaced by U+FFFD. An incomplete character at the end is left for the
// next call, or replaced, too, if `final`.
std::size_t append_utf8(std::string_view bytes, bool final, std::string& out);

// Offset of the first byte that is not valid UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view bytes);

}  // namespace specllama
