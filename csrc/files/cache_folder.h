#pragma once

#include <filesystem>
#include <string>

namespace specllama {

// The folder in which measurements are remembered: SPECLLAMA_CACHE, or "specllama" in the user's
// folder for caches. Empty if neither is known. The folder need not exist.
std::filesystem::path cache_folder();

// The content of the file `path` in that folder; "": there is none. Whatever others put there: a
// pipe, a device, or a file of more than 1 MiB counts as none.
std::string read_cache_file(const std::filesystem::path& path);

// Writes `text` to the file `path`, creating its folder. If that fails, or `path` is empty, an
// existing file stays as it is. A concurrent reader sees either the old text or the new one, whole.
void write_cache_file(const std::filesystem::path& path, const std::string& text);

// Texts in `folder` (empty: there are none) that are remembered by a key: one line with all that
// the text depends on. Each has a file of its own, which begins with the key. kind: the ending of
// its name.
//
// The text of a key; "": there is none.
std::string recall(const std::filesystem::path& folder, const std::string& kind,
                   const std::string& key);
void remember(const std::filesystem::path& folder, const std::string& kind, const std::string& key,
              const std::string& text);

}  // namespace specllama
