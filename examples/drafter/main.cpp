// A custom drafter in C++. It finds the last earlier place of the last two tokens, and drafts the
// tokens that followed there.
//
//     cmake -S examples/drafter -B build/drafter -DCMAKE_PREFIX_PATH=<where specllama is installed>
//     cmake --build build/drafter
//     build/drafter/drafter model.gguf "The prompt."

#include <algorithm>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "specllama/specllama.h"

namespace {

using namespace specllama;

class Copies final : public Drafter {
 public:
    void begin(SequenceId sequence, TokenSpan /*prompt*/, TokenSpan /*reference*/) override {
        records_[sequence] = {};
    }

    void propose(std::span<Proposal> proposals) override {
        for (Proposal& proposal : proposals) {
            if (proposal.tokens.size() < 3) continue;
            const TokenSpan last = proposal.tokens.last(2);
            const TokenSpan before = proposal.tokens.first(proposal.tokens.size() - 1);
            const auto found = std::ranges::find_end(before, last);
            const TokenSpan follows(found.end(), proposal.tokens.end());
            if (found.empty()) continue;
            // The confidence is the share of tokens accepted so far. The planner weighs drafts by
            // it.
            const Record& record = records_[proposal.sequence];
            const float confidence = record.accepted / record.proposed;
            for (const Token token : follows) {
                if (proposal.draft.size() == proposal.max_tokens) break;
                proposal.draft.push(token, {.confidence = confidence});
            }
        }
    }

    void observe(SequenceId sequence, const Draft& draft, int n_accepted, Token /*next*/) override {
        Record& record = records_[sequence];
        record.accepted += static_cast<float>(n_accepted);
        record.proposed += static_cast<float>(std::min(draft.size(), n_accepted + 1));
    }

    void end(SequenceId sequence) override { records_.erase(sequence); }

 private:
    struct Record {
        float accepted = 1;
        float proposed = 2;
    };
    std::map<SequenceId, Record> records_;
};

void generate(const std::string& model, const std::string& prompt) {
    SessionOptions options;
    options.model.path = model;
    // A fixed length always drafts, for the demonstration; without it, only drafts that pay.
    options.spec_length = 4;
    Session session(options, std::make_shared<Copies>());
    GenerateOptions request;
    request.max_tokens = 64;
    Stream stream = session.start(session.tokenize(prompt), request);
    std::vector<Chunk> chunks;
    while (stream.step(chunks))
        for (const Chunk& chunk : chunks) std::cout << chunk.text << std::flush;
    const Stats stats = stream.stats();
    std::cerr << "\ndrafted " << stats.drafted << ", accepted " << stats.accepted << ", errors "
              << stats.drafter_errors << ", tokens per round " << stats.tokens_per_round() << '\n';
}

}  // namespace

int main(int n_arguments, char** arguments) {
    if (n_arguments != 3) {
        std::cerr << "usage: drafter MODEL PROMPT\n";
        return 2;
    }
    try {
        generate(arguments[1], arguments[2]);
    } catch (const std::exception& error) {
        std::cerr << "drafter: " << error.what() << '\n';
        return 1;
    }
    return 0;
}
