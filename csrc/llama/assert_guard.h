#pragma once

#include <string>

namespace specllama {

// While it lives, an assertion of llama.cpp that fails on this thread is an exception there, which
// llama.cpp itself reports like its other errors; otherwise it ends the process. Only for what
// computes nothing: loading a model, and making a context. (Threads that compute wait for each
// other, and one of them may not leave.)
class AssertGuard {
 public:
    AssertGuard();
    ~AssertGuard();
    AssertGuard(const AssertGuard&) = delete;
    AssertGuard& operator=(const AssertGuard&) = delete;

    // While it lives, they end the process here, too: for what a program does when it is called
    // back.
    class Suspend {
     public:
        Suspend();
        ~Suspend();
        Suspend(const Suspend&) = delete;
        Suspend& operator=(const Suspend&) = delete;

     private:
        AssertGuard* before_;
    };

    // What did not hold, as a part of a sentence; "": all did.
    const std::string& failed() const { return failed_; }

 private:
    friend void fail_assertion(const char* message);
    std::string failed_;
    AssertGuard* outer_;
};

}  // namespace specllama
