#include "runtime/gbnf_mask.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "llama-cpp.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// llama.cpp parses groups and rules recursively.
constexpr std::size_t kMaxBytes = std::size_t{64} << 10;

class GbnfMask final : public Mask {
 public:
    GbnfMask(const Vocab& vocab, llama_sampler_ptr sampler)
        : sampler_(std::move(sampler)), candidates_(vocab.size()) {}

    Bits allowed() override {
        bits_.assign((candidates_.size() + 31) / 32, 0);
        for (std::size_t i = 0; i < candidates_.size(); ++i)
            candidates_[i] = {static_cast<Token>(i), 0, 0};
        ask(candidates_);
        for (std::size_t i = 0; i < candidates_.size(); ++i)
            if (candidates_[i].logit == 0) bits_[i / 32] |= std::uint32_t{1} << (i % 32);
        return bits_;
    }

    std::size_t n_allowed(TokenSpan draft) override {
        if (draft.empty()) return 0;
        llama_token_data first{draft[0], 0, 0};
        ask({&first, 1});
        return first.logit == 0 ? draft.size() : 0;
    }

    void accept(Token token) override { llama_sampler_accept(sampler_.get(), token); }

    bool begun() const override { return true; }

    // Looking ahead needs more masks than this engine can compute in time.
    std::unique_ptr<Mask> clone() const override { return nullptr; }

 private:
    void ask(std::span<llama_token_data> candidates) {
        llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
        llama_sampler_apply(sampler_.get(), &array);
    }

    llama_sampler_ptr sampler_;
    std::vector<llama_token_data> candidates_;  // kept to reuse the buffer
    std::vector<std::uint32_t> bits_;
};

}  // namespace

std::unique_ptr<Mask> make_gbnf_mask(const Vocab& vocab, const std::string& gbnf) {
    if (gbnf.size() > kMaxBytes)
        throw InvalidArgument("The grammar has " + std::to_string(gbnf.size()) +
                              " bytes; at most 65536 are allowed.");
    llama_sampler_ptr sampler(llama_sampler_init_grammar(vocab.get(), gbnf.c_str(), "root"));
    if (!sampler)
        throw InvalidArgument("The grammar cannot be read; llama.cpp's message above says why.");
    return std::make_unique<GbnfMask>(vocab, std::move(sampler));
}

}  // namespace specllama
