#pragma once

#include <string>
#include <string_view>

namespace specllama::cli {

// The text with \n, \r, \t, \', \", \\ and \x41 (one byte, by two hexadecimal digits) as what they
// stand for, as llama.cpp's programs read prompts. Any other backslash stays.
std::string unescaped(std::string_view text);

}  // namespace specllama::cli
