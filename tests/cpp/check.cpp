#include "check.h"

#include <exception>
#include <iostream>
#include <vector>

namespace specllama::tests {

namespace {

struct Test {
    const char* name;
    Function function;
};

// In a function, because tests are registered before main, in any order.
std::vector<Test>& all() {
    static std::vector<Test> tests;
    return tests;
}

int n_checks = 0;
int n_failed = 0;

}  // namespace

bool enter(const char* name, Function function) {
    all().push_back({name, function});
    return true;
}

void report(bool holds, const char* file, int line, const std::string& what) {
    ++n_checks;
    if (holds) return;
    ++n_failed;
    std::cerr << file << ':' << line << ": " << what << '\n';
}

}  // namespace specllama::tests

// Exit code 1 if a check fails, or if a test has no check.
int main() {
    using namespace specllama::tests;
    int n_tests_failed = 0;
    for (const Test& test : all()) {
        const int before = n_failed;
        const int n_checks_before = n_checks;
        try {
            test.function();
        } catch (const std::exception& error) {
            report(false, test.name, 0, std::string("throws: ") + error.what());
        }
        if (n_checks == n_checks_before) report(false, test.name, 0, "checks nothing");
        if (n_failed == before) continue;
        ++n_tests_failed;
        std::cerr << "FAILED: " << test.name << '\n';
    }
    std::cout << all().size() << " tests, " << n_tests_failed << " failed, " << n_checks
              << " checks\n";
    return n_tests_failed == 0 ? 0 : 1;
}
