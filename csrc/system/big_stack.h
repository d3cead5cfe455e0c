#pragma once

#include <cstddef>
#include <functional>

namespace specllama {

// Calls `work` in a thread with a stack of so many bytes and waits for it: for what calls itself as
// often as its input is long. What it throws is thrown here. Throws std::system_error where there
// can be no such thread.
void with_stack(std::size_t bytes, const std::function<void()>& work);

}  // namespace specllama
