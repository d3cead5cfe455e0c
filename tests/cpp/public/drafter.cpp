// Drafters written in C++ outside the library: their calls, and errors that they cannot cause.
// SPECLLAMA_TEST_MODEL: path of the model.

#include "specllama/drafter.h"

#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "check.h"
#include "specllama/error.h"
#include "specllama/session.h"

using namespace specllama;

namespace {

using Rule = std::function<void(Proposal&)>;

// Proposes what a function returns, and records its calls.
class Ruled final : public Drafter {
 public:
    explicit Ruled(Rule rule, bool has_step_cost = false)
        : rule_(std::move(rule)), has_step_cost_(has_step_cost) {}

    void begin(SequenceId /*sequence*/, TokenSpan prompt, TokenSpan reference) override {
        ++n_begun;
        n_prompt = prompt.size();
        n_reference = reference.size();
    }
    void propose(std::span<Proposal> proposals) override {
        for (Proposal& proposal : proposals)
            if (proposal.max_tokens > 0) rule_(proposal);
    }
    void observe(SequenceId /*sequence*/, const Draft& draft, int n_accepted,
                 Token /*next*/) override {
        n_observed += draft.size();
        n_right += n_accepted;
    }
    bool has_step_cost() const override { return has_step_cost_; }
    int n_unprocessed(SequenceId /*sequence*/, int /*n_tokens*/) const override {
        if (fails_on_unprocessed) throw DrafterError("no idea");
        return 0;
    }
    void end(SequenceId /*sequence*/) override { ++n_ended; }

    std::size_t n_prompt = 0;
    std::size_t n_reference = 0;
    int n_begun = 0;
    int n_ended = 0;
    int n_observed = 0;
    int n_right = 0;
    bool fails_on_unprocessed = false;

 private:
    Rule rule_;
    bool has_step_cost_;
};

// A session in which speculation changes no token.
SessionOptions options_of(std::optional<int> spec_length) {
    SessionOptions options;
    options.model.path = std::getenv("SPECLLAMA_TEST_MODEL");
    options.model.n_gpu_layers = 0;
    options.context.kv_type = "q8_0";
    options.context.n_threads = 1;
    options.spec_length = spec_length;
    return options;
}

struct Generated {
    std::vector<Token> tokens;
    Stats stats;
};

Generated generate(Session& session, std::vector<Token> reference = {}) {
    GenerateOptions request;
    request.max_tokens = 40;
    request.reference = std::move(reference);
    Stream stream = session.start(session.tokenize("class Stack:\n    def __init__"), request);
    std::vector<Chunk> chunks;
    while (stream.step(chunks)) {
    }
    return {stream.tokens(), stream.stats()};
}

Generated generate(std::shared_ptr<Drafter> drafter, std::optional<int> spec_length = 4) {
    Session session(options_of(spec_length), std::move(drafter));
    return generate(session);
}

const std::vector<Token>& plain() {
    static const std::vector<Token> tokens = generate(nullptr).tokens;
    return tokens;
}

// Proposes the target's next tokens.
void foresee(Proposal& proposal, std::size_t n_prompt) {
    const std::size_t n_done = proposal.tokens.size() - n_prompt;
    for (std::size_t i = n_done + proposal.draft.size(); i < plain().size(); ++i) {
        if (proposal.draft.size() == proposal.max_tokens) return;
        if (proposal.keep_drafting && !proposal.keep_drafting(proposal.draft)) return;
        proposal.draft.push(plain()[i], {.confidence = 0.9f});
    }
}

}  // namespace

TEST(a_drafter_is_called_for_begin_every_round_and_end) {
    std::shared_ptr<Ruled> seer;
    seer = std::make_shared<Ruled>([&](Proposal& p) { foresee(p, seer->n_prompt); });
    Session session(options_of(4), seer);
    const Generated generated = generate(session, {1, 2, 3});
    CHECK(generated.tokens == plain());
    CHECK(generated.stats.drafted > 20);
    CHECK(generated.stats.accepted == generated.stats.drafted);
    CHECK(generated.stats.drafter_errors == 0);
    CHECK(seer->n_begun == 1 && seer->n_ended == 1 && seer->n_reference == 3);
    CHECK(seer->n_right > 20 && seer->n_right == seer->n_observed);
}

TEST(wrong_drafts_change_no_token) {
    const Generated generated = generate(std::make_shared<Ruled>([](Proposal& p) {
        while (p.draft.size() < p.max_tokens) p.draft.push(p.tokens.back(), {});
    }));
    CHECK(generated.tokens == plain());
    CHECK(generated.stats.drafted > generated.stats.accepted);
}

TEST(errors_of_a_drafter_are_recorded) {
    const std::vector<Rule> rules = {
        [](Proposal& p) {
            for (int i = 0; i <= p.max_tokens; ++i) p.draft.push(1, {});
        },
        [](Proposal& p) { p.draft.push(-1, {}); },
        [](Proposal& p) { p.draft.push(1 << 30, {}); },
        [](Proposal& p) { p.draft.tokens.push_back(1); },
        [](Proposal& p) { p.draft.evidence.push_back({}); },
        [](Proposal& p) { p.draft.push(1, {.source = static_cast<Source>(99)}); },
        [](Proposal& p) { p.draft.push_branch(1, 1, {}); },
        [](Proposal& p) { p.draft.extend_branch(1, {}); },
        [](Proposal& p) { p.draft.push_branch(0, -1, {}); },
        [](Proposal& p) { p.error = "The drafter has no idea."; },
        [](Proposal&) { throw DrafterError("The drafter gives up."); },
    };
    for (const Rule& rule : rules) {
        const Generated generated = generate(std::make_shared<Ruled>(rule));
        CHECK(generated.tokens == plain());
        CHECK(generated.stats.drafter_errors > 0);
        CHECK(!generated.stats.last_drafter_error.empty());
        CHECK(generated.stats.drafted == 0);
    }
}

TEST(other_exceptions_of_a_drafter_reach_the_caller) {
    bool angry = true;
    Session session(options_of(4), std::make_shared<Ruled>([&](Proposal&) {
                        if (angry) throw std::logic_error("no error of specllama");
                    }));
    CHECK_THROWS(std::logic_error, generate(session));
    angry = false;
    CHECK(generate(session).tokens == plain());
}

TEST(a_sequential_drafter_can_stop_after_each_token) {
    for (const std::optional<int> spec_length : {std::optional<int>(), std::optional<int>(4)}) {
        std::shared_ptr<Ruled> seer;
        bool asked = false;
        seer = std::make_shared<Ruled>(
            [&](Proposal& p) {
                asked |= p.keep_drafting != nullptr;
                foresee(p, seer->n_prompt);
            },
            true);
        const Generated generated = generate(seer, spec_length);
        CHECK(generated.tokens == plain());
        CHECK(generated.stats.drafter_errors == 0);
        CHECK(asked == !spec_length);
    }
}

TEST(errors_of_n_unprocessed_are_recorded) {
    const auto drafter = std::make_shared<Ruled>([](Proposal&) {}, true);
    drafter->fails_on_unprocessed = true;
    // Only planned drafts depend on n_unprocessed.
    const Generated generated = generate(drafter, {});
    CHECK(generated.tokens == plain());
    CHECK(generated.stats.drafter_errors > 0);
}

TEST(a_second_sequential_drafter_is_refused) {
    SessionOptions options = options_of({});
    options.draft.path = options.model.path;
    const auto sequential = std::make_shared<Ruled>([](Proposal&) {}, true);
    CHECK_THROWS(InvalidArgument, Session(options, sequential));
}

TEST(assigning_a_stream_ends_the_previous_one) {
    SessionOptions options = options_of(4);
    options.context.n_seq = 2;
    Session session(options, nullptr);
    const std::vector<Token> prompt = session.tokenize("def f(");
    GenerateOptions endless;
    endless.max_tokens = -1;
    Stream stream = session.start(prompt, endless);
    for (int i = 0; i < 4; ++i) {
        stream = session.start(prompt, endless);
        std::vector<Chunk> chunks;
        CHECK(stream.step(chunks));
    }
}
