#pragma once

#include <string>

namespace specllama {

// While it lives, an assertion of llama.cpp that fails on this thread is an exception there, which
// llama.cpp itself reports like its other errors; otherwise it ends the process. Only for what
// computes nothing: loading a model, and making a context. (Threads that compute wait for each
// other, and one of them may not leave.)
class Assertions {
 public:
    Assertions();
    ~Assertions();
    Assertions(const Assertions&) = delete;
    Assertions& operator=(const Assertions&) = delete;

    // While it lives, they end the process here, too: for what a program does when it is called
    // back.
    class Off {
     public:
        Off();
        ~Off();
        Off(const Off&) = delete;
        Off& operator=(const Off&) = delete;

     private:
        Assertions* before_;
    };

    // What did not hold, as a part of a sentence; "": all did.
    const std::string& failed() const { return failed_; }

 private:
    friend void fail_assertion(const char* message);
    std::string failed_;
    Assertions* outer_;
};

}  // namespace specllama
