#include "system/big_stack.h"

#include <pthread.h>
#include <unistd.h>

#include <exception>
#include <system_error>

namespace specllama {

namespace {

struct Call {
    const std::function<void()>& work;
    std::exception_ptr thrown;
};

void* run(void* argument) {
    Call& call = *static_cast<Call*>(argument);
    try {
        call.work();
    } catch (...) {
        call.thrown = std::current_exception();
    }
    return nullptr;
}

void check(int error) {
    if (error != 0) throw std::system_error(error, std::generic_category());
}

}  // namespace

void with_stack(std::size_t bytes, const std::function<void()>& work) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    Call call{work, nullptr};
    pthread_attr_t attributes;
    check(pthread_attr_init(&attributes));
    int error = pthread_attr_setstacksize(&attributes, (bytes + page - 1) / page * page);
    pthread_t thread{};
    if (error == 0) error = pthread_create(&thread, &attributes, &run, &call);
    pthread_attr_destroy(&attributes);
    check(error);
    pthread_join(thread, nullptr);
    if (call.thrown) std::rethrow_exception(call.thrown);
}

}  // namespace specllama
