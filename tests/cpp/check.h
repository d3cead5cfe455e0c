#pragma once

// A minimal test framework, because no other one is installed by pip. The tests run wherever
// specllama builds.

#include <string>

namespace specllama::tests {

using Function = void (*)();

// Registers a test; the returned value has no meaning.
bool enter(const char* name, Function function);

// Records the result of a check; if it is false, the running test has failed.
void report(bool holds, const char* file, int line, const std::string& what);

template <typename Exception, typename Call>
bool throws(Call call) {
    try {
        call();
    } catch (const Exception&) {
        return true;
    }
    return false;
}

}  // namespace specllama::tests

#define TEST(name)                                                                             \
    static void name();                                                                        \
    [[maybe_unused]] static const bool name##_entered = specllama::tests::enter(#name, &name); \
    static void name()

#define CHECK(...) specllama::tests::report((__VA_ARGS__), __FILE__, __LINE__, #__VA_ARGS__)

#define CHECK_THROWS(exception, ...)                                                              \
    specllama::tests::report(specllama::tests::throws<exception>([&] { __VA_ARGS__; }), __FILE__, \
                             __LINE__, #__VA_ARGS__ " throws " #exception)
