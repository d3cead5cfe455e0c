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
    const auto look_in = [&] { return Gate::Brief(gate, std::try_to_lock).entered(); };
    CHECK(!std::async(std::launch::async, look_in).get());
}

namespace {

// Whether a call that others refuse waits until this one has left.
template <typename Call>
void check_that_others_wait_for(Gate& gate, Call&& call) {
    std::future<void> other;
    {
        const auto brief = call();
        CHECK(brief.entered());
        CHECK_THROWS(Busy, const Gate::Work own(gate));
        other = std::async(std::launch::async, [&] { const Gate::Work work(gate); });
        CHECK(other.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
    }
    CHECK(!specllama::tests::throws<Busy>([&] { other.get(); }));
}

}  // namespace

TEST(a_call_is_not_refused_because_of_a_brief_one) {
    Gate gate(Gate::Policy::refuse);
    check_that_others_wait_for(gate, [&] { return Gate::Brief(gate); });
    check_that_others_wait_for(gate, [&] { return Gate::Brief(gate, gate.policy()); });
    check_that_others_wait_for(gate, [&] { return Gate::Brief(gate, std::try_to_lock); });
}

TEST(a_call_is_refused_if_others_work_before_a_brief_one) {
    Gate gate(Gate::Policy::refuse);
    std::future<void> brief;
    {
        const Gate::Work work(gate);
        brief = std::async(std::launch::async, [&] { const Gate::Brief one(gate); });
        CHECK(brief.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
        const auto enter = [&] { const Gate::Work other(gate); };
        CHECK_THROWS(Busy, std::async(std::launch::async, enter).get());
    }
    brief.get();
}

TEST(a_call_waits_for_those_that_are_to_be_awaited) {
    Gate gate(Gate::Policy::refuse);
    std::future<void> other;
    {
        const Gate::Work work(gate);
        gate.await_present();
        other = std::async(std::launch::async, [&] { const Gate::Work one(gate); });
        CHECK(other.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
    }
    CHECK(!specllama::tests::throws<Busy>([&] { other.get(); }));
    const Gate::Work later(gate);
    CHECK_THROWS(Busy, std::async(std::launch::async, [&] { const Gate::Work one(gate); }).get());
}

TEST(a_brief_call_may_be_refused) {
    Gate gate(Gate::Policy::refuse);
    const Gate::Work work(gate);
    const auto enter = [&] { const Gate::Brief brief(gate, gate.policy()); };
    CHECK_THROWS(Busy, std::async(std::launch::async, enter).get());
}
