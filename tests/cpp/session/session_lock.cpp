#include "session/session_lock.h"

#include <chrono>
#include <future>
#include <mutex>
#include <vector>

#include "check.h"

using namespace specllama;

namespace {

bool waits(const std::future<void>& call) {
    return call.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
}

}  // namespace

TEST(calls_get_the_lock_in_the_order_of_their_arrival) {
    SessionLock lock;
    std::vector<int> order;
    std::vector<std::future<void>> calls;
    {
        const std::scoped_lock first(lock);
        for (int i = 0; i < 4; ++i) {
            calls.push_back(std::async(std::launch::async, [&, i] {
                const std::scoped_lock turn(lock);
                order.push_back(i);
            }));
            CHECK(waits(calls.back()));  // it is in the queue before the next call
        }
    }
    for (auto& call : calls) call.get();
    CHECK((order == std::vector{0, 1, 2, 3}));
}

TEST(a_call_of_the_holder_itself_throws_and_changes_nothing) {
    SessionLock lock;
    const std::scoped_lock first(lock);
    CHECK(lock.held());
    CHECK_THROWS(Busy, lock.lock());
    CHECK_THROWS(Busy, lock.check_not_held());
    CHECK(!lock.try_lock());
    CHECK(lock.held());
    CHECK(!std::async(std::launch::async, [&] { return lock.held(); }).get());
}

TEST(try_lock_fails_while_another_call_has_the_lock_or_waits_for_it) {
    SessionLock lock;
    const auto try_once = [&] {
        return std::async(std::launch::async,
                          [&] {
                              const std::unique_lock turn(lock, std::try_to_lock);
                              return turn.owns_lock();
                          })
            .get();
    };
    CHECK(try_once());
    {
        const std::scoped_lock first(lock);
        CHECK(!try_once());
    }
    CHECK(try_once());
    CHECK(!lock.held());
}
