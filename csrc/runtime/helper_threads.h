#pragma once

namespace specllama {

// OpenMP's runtime keeps the helper threads of a decode for the next decode of the same thread, and
// counts the threads of the whole process. If helpers and calling threads outnumber the processors,
// GCC's runtime lets them sleep whenever they wait for each other. A decode then takes a fifth
// longer, even if all other threads are idle. These functions do nothing if llama.cpp does not use
// OpenMP.

// Releases the helpers of the calling thread, which opens or closes a session and may not decode
// again.
void release_helper_threads();

// Call it when the calling thread has nothing to decode for now. It releases the thread's helpers
// if other threads decode, too. Otherwise it keeps them, because new ones need 0.1 ms to start and,
// with some operating system kernels, 15 ms until each has its own processor.
void rest_helper_threads();

}  // namespace specllama
