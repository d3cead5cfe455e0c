#pragma once

namespace specllama {

// The threads that help this one with decodes are kept by OpenMP's runtime, for as long as this
// thread lives, for its next decode; they are counted over the whole process. GCC's runtime has
// all of them wait by sleeping, not by looking again, once they and those they help are more than
// the processors: on two of them every decode in any second thread of a process takes a fifth
// longer. So whoever has nothing left to decode lets its helpers go; the next decode makes new
// ones in less than a tenth of a millisecond. Does nothing where llama.cpp does not use OpenMP.
void release_helper_threads();

// Lets them go at the end of a scope.
class HelperThreads {
 public:
    HelperThreads() = default;
    ~HelperThreads() { release_helper_threads(); }
    HelperThreads(const HelperThreads&) = delete;
    HelperThreads& operator=(const HelperThreads&) = delete;
};

}  // namespace specllama
