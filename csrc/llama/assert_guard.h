#pragma once

#include <string>
#include <string_view>

namespace specllama {

// While it lives, an assertion of llama.cpp that fails on this thread is an exception there, which
// llama.cpp itself reports like its other errors; otherwise it ends the process. (Threads that
// compute wait for each other, and one of them may not leave.)
class AssertGuard {
 public:
    // all: for what computes nothing, such as loading a model, or making a context. graphs: only
    // assertions of what comes before and after the computing when a projector encodes.
    enum class Scope { all, graphs };

    explicit AssertGuard(Scope scope = Scope::all);
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
    bool covers(std::string_view message) const;

    Scope scope_;
    std::string failed_;
    AssertGuard* outer_;
};

}  // namespace specllama
