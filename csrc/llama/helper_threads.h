#pragma once

namespace specllama {

// The threads that help this one with decodes are kept for its next decode by OpenMP's runtime,
// which counts those of the whole process. Once they and whom they help are more than the
// processors, GCC's has all of them sleep wherever they wait for each other: then a decode takes a
// fifth longer, though all threads but its own are idle. Nothing here does anything where llama.cpp
// does not use OpenMP.

// Lets those of the calling thread go: it opens or closes a session, and may decode no more.
void release_helper_threads();

// The calling thread has nothing left to decode for now: lets its helpers go if other threads
// decode, too. Else it keeps them, since new ones take a tenth of a millisecond, and some kernels
// 15 until they have a processor of their own.
void rest_helper_threads();

}  // namespace specllama
