#pragma once

namespace specllama {

// From now on the calling thread uses what others leave of the processors.
void lower_priority();

}  // namespace specllama
