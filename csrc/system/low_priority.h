#pragma once

namespace specllama {

// Gives the calling thread the lowest priority.
void lower_priority();

}  // namespace specllama
