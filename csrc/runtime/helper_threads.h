#pragma once

namespace specllama {

// OpenMP's runtime keeps the helper threads of a decode for the next decode of the same thread, and
// counts the threads of the whole process. Once helpers and helped threads are more than there are
// processors, GCC's runtime lets all of them sleep wherever they wait for each other: a decode then
// takes a fifth longer, even if all other threads are idle. These functions do nothing if llama.cpp
// does not use OpenMP.

// Releases the helpers of the calling thread, which opens or closes a session and may decode no
// more.
void release_helper_threads();

// To be called when the calling thread has nothing to decode for now. Releases its helpers if other
// threads decode, too. Otherwise it keeps them, since new ones take a tenth of a millisecond to
// start, and with some operating system kernels 15 ms until each has a processor of its own.
void rest_helper_threads();

}  // namespace specllama
