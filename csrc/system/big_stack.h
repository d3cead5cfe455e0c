#pragma once

#include <cstddef>
#include <functional>

namespace specllama {

// Calls `work` in a thread whose stack has this many bytes, and waits for it: for functions that
// recurse once for each element of their input. What `work` throws is thrown here. Throws
// std::system_error if such a thread cannot be created.
void with_stack(std::size_t bytes, const std::function<void()>& work);

}  // namespace specllama
