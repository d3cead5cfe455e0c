#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "draft/state_reader.h"
#include "llama/context.h"
#include "llama/head_context.h"
#include "llama/model.h"
#include "sample/sampler.h"
#include "specllama/config.h"
#include "specllama/drafter.h"

namespace specllama {

// Drafts with a head: a layer or so that goes on from the target's hidden states, token by token,
// by the same choice rule and the same noise as the target. An EAGLE-3 file (Li et al. 2025), or
// the layers of multi-token prediction in the target's own file (DeepSeek-V3, 2024, section 2.2).
//
// A head decodes pairs: a token and the state before it. Of what the target has decoded the state
// is the target's; behind that, the head's own. States are taken in when the head is to draft, or
// when many wait; what a request leaves stays for the next one that begins alike. Tokens whose
// states nobody has seen, as of a KV memory that was loaded, are passed over: a draft is then
// worse, no more.
//
// Several sequences draft a token each in one decode; one that fails is an error of them all.
class HeadDrafter final : public Drafter, public StateReader {
 public:
    // head: null: the target's own file holds it, and was loaded with it. Throws InvalidArgument;
    // ModelError when the head cannot draft for the target.
    HeadDrafter(const std::shared_ptr<const Model>& target, const DraftModelOptions& options,
                const Header* head, const ProgressFunction& progress);

    // To be called once, before all else: has the target keep the states that are read. It must
    // outlive this. Throws OutOfMemory and InvalidArgument.
    void attach(Context& target);

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void absorb(SequenceId sequence, TokenSpan tokens, Position first,
                std::span<const int> rows) override;
    void propose(std::span<Proposal> proposals) override;

    bool costly() const override { return true; }
    int n_behind(SequenceId sequence, int n_tokens) const override;

 private:
    // Of the states that were seen the last ones wait for their pairs to be decoded: first those
    // that are known, then those of which there are only the target's features. The last one always
    // waits, for the token behind it.
    struct Follower {
        std::vector<Token> tokens;    // of the sequence, and of the draft behind them
        int n_seen = 0;               // of these, those whose states were seen, or passed over
        std::vector<Position> pairs;  // [i]: position of the state of pair i in the memory
        std::vector<float> states;    // [n_known][n_state]
        std::vector<float> features;  // [n_raw][n_features]
        int n_known = 0;
        int n_raw = 0;
        std::optional<Sampler> sampler;        // of the request, once it has drafted
        std::vector<Distribution> drawn_from;  // [i]: of its draft's token i

        int n_waiting() const { return n_known + n_raw; }
        int n_pairs() const { return static_cast<int>(pairs.size()); }
        // Position of the first state that waits.
        Position first() const { return n_seen - n_waiting(); }
        // Leading tokens that a prompt has in common with those that were seen.
        int n_common(TokenSpan prompt) const;
    };
    // A draft under way.
    struct Drafting {
        Proposal* proposal;
        Follower* follower;
        int row;  // of the logits after its last token
    };

    void reuse(SequenceId sequence, TokenSpan prompt);
    void keep(SequenceId sequence, Follower& follower, int n);
    void encode(Follower& follower);
    int take_in(SequenceId sequence, Follower& follower);
    int add_waiting(SequenceId sequence, const Follower& follower, int n, bool logits);
    void waiting_decoded(Follower& follower);
    void start(std::span<Proposal> proposals);
    void draft();
    bool extend(const Drafting& drafting);
    float* state(Follower& follower, int i) const;

    std::shared_ptr<const Model> head_;
    HeadContext::Kind kind_ = HeadContext::Kind::mtp;
    std::vector<int> layers_;  // of the target, whose inputs are read; none: the last state
    DraftModelOptions options_;
    Context* target_ = nullptr;
    std::optional<HeadContext> context_;
    std::map<SequenceId, Follower> followers_;
    std::vector<Drafting> drafting_;  // kept so that no draft allocates
};

}  // namespace specllama
