#pragma once

#include <filesystem>
#include <string>

namespace specllama {

// The folder for cached measurements: SPECLLAMA_CACHE, or "specllama" in the user's cache folder.
// Empty if neither is known. The folder need not exist.
std::filesystem::path cache_folder();

// The content of the file `path` in that folder; "": none. A pipe, a device, or a file of more than
// 1 MiB counts as none.
std::string read_cache_file(const std::filesystem::path& path);

// Writes `text` to the file `path`, and creates its folder. If that fails, or `path` is empty, an
// existing file stays unchanged. A concurrent reader sees either the complete old text or the
// complete new one.
void write_cache_file(const std::filesystem::path& path, const std::string& text);

// Texts in `folder` (empty: nothing is stored), stored by a key: one line with everything that the
// text depends on. Each text has a separate file, which begins with the key. kind: its file
// extension.
//
// The text of a key; "": none.
std::string recall(const std::filesystem::path& folder, const std::string& kind,
                   const std::string& key);
void remember(const std::filesystem::path& folder, const std::string& kind, const std::string& key,
              const std::string& text);

}  // namespace specllama
