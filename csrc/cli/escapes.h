#pragma once

#include <string>
#include <string_view>

namespace specllama::cli {

// Returns the text with the escapes \n, \r, \t, \', \", \\ and \x41 (one byte, two hexadecimal
// digits) replaced by what they stand for, as llama.cpp's programs do. Any other backslash stays.
std::string unescaped(std::string_view text);

}  // namespace specllama::cli
