#pragma once

#include <cstddef>
#include <functional>

namespace specllama {

// Calls `work` in a thread with a stack of this many bytes, and waits for it: for functions that
// recurse once for each element of their input. Rethrows exceptions of `work`. Throws
// std::system_error if the thread cannot be created.
void with_stack(std::size_t bytes, const std::function<void()>& work);

}  // namespace specllama
