#pragma once

#include <filesystem>
#include <string>

namespace specllama {

// Where what was measured is remembered: SPECLLAMA_CACHE, or "specllama" in the user's folder for
// caches. Empty if there is none. It need not exist.
std::filesystem::path cache_folder();

// Puts a text into a file of that name there, or leaves things as they are where it cannot be
// written. Who reads it meanwhile sees the old text or the new one.
void write_cache_file(const std::filesystem::path& path, const std::string& text);

}  // namespace specllama
