#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace specllama {

// The bytes of a regular file, as many as it has when it is opened; fewer if it is cut short
// meanwhile. (Mapped instead, it would then end the process.) Opening never waits: not for the
// writer of a pipe, either. Throws std::system_error unless `path` names a readable regular file of
// `most` bytes at most, or a link to one.
std::vector<std::byte> read_regular(const std::string& path, std::size_t most);

}  // namespace specllama
