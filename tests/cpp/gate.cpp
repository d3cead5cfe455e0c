#include "session/gate.h"

#include <chrono>
#include <future>

#include "check.h"

using namespace specllama;

TEST(one_call_at_a_time_works) {
    Gate gate(Gate::Policy::refuse);
    const Gate::Work work(gate);
    CHECK(gate.entered());
    CHECK_THROWS(Busy, const Gate::Work own(gate, Gate::Policy::queue));
    const auto enter = [&] { const Gate::Work other(gate); };
    CHECK_THROWS(Busy, std::async(std::launch::async, enter).get());
    const auto tidy = [&] { return Gate::Tidying(gate).entered(); };
    CHECK(!std::async(std::launch::async, tidy).get());
}

TEST(a_call_is_not_refused_because_another_one_tidies) {
    Gate gate(Gate::Policy::refuse);
    std::future<void> other;
    {
        const Gate::Tidying tidying(gate);
        CHECK(tidying.entered());
        CHECK_THROWS(Busy, const Gate::Work own(gate));
        other = std::async(std::launch::async, [&] { const Gate::Work work(gate); });
        CHECK(other.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
    }
    CHECK(!specllama::tests::throws<Busy>([&] { other.get(); }));
    CHECK(Gate::Tidying(gate).entered());
}
