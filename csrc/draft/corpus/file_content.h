#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace specllama {

// Returns the bytes of a file, as many as it has when it is opened. (Mapped instead, a file that is
// cut short later would end the process.) Throws InvalidArgument if `path` is not a readable
// regular file.
std::vector<std::byte> file_content(const std::string& path);

}  // namespace specllama
