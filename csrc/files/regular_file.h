#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace specllama {

// The bytes of a regular file, by its size when it is opened; fewer if it is truncated meanwhile.
// (A memory map would then end the process.) Opening never waits, not even for the writer of a
// pipe. Throws std::system_error unless `path` is a readable regular file of at most `most` bytes,
// or a link to one.
std::vector<std::byte> read_regular(const std::string& path, std::size_t most);

}  // namespace specllama
