#pragma once

#include <string>
#include <string_view>

namespace specllama {

// While it lives, a failed assertion of llama.cpp on this thread throws an exception, which
// llama.cpp itself reports like its other errors. Otherwise a failed assertion ends the process.
// (Compute threads wait for each other, so none of them may leave by an exception.)
class AssertGuard {
 public:
    // all: for code that computes nothing, such as loading a model or making a context. graphs:
    // only assertions of the code before and after the computation of a projector.
    enum class Scope { all, graphs };

    explicit AssertGuard(Scope scope = Scope::all);
    ~AssertGuard();
    AssertGuard(const AssertGuard&) = delete;
    AssertGuard& operator=(const AssertGuard&) = delete;

    // While it lives, failed assertions end the process again: for the caller's callbacks.
    class Suspend {
     public:
        Suspend();
        ~Suspend();
        Suspend(const Suspend&) = delete;
        Suspend& operator=(const Suspend&) = delete;

     private:
        AssertGuard* before_;
    };

    // The failed assertion, as a part of a sentence; "": none failed.
    const std::string& failed() const { return failed_; }

 private:
    friend void fail_assertion(const char* message);
    bool covers(std::string_view message) const;

    Scope scope_;
    std::string failed_;
    AssertGuard* outer_;
};

}  // namespace specllama
