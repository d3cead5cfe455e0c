#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "llama/context.h"
#include "llama/model.h"
#include "sample/sampler.h"
#include "specllama/config.h"
#include "specllama/drafter.h"

namespace specllama {

// Drafts with a smaller model of the same vocabulary, token by token, by the same choice rule and
// the same noise as the target: where the two distributions agree, so do the choices.
//
// Its KV memory follows the sequence: filled at the first draft, cut back to the accepted prefix,
// and never decoding a token again that was not rejected in between. (Leviathan et al. 2023,
// section 2.3, with lazy prefill; the coupling is Daliri et al. 2024.)
//
// Several sequences draft a token each in one decode; one that fails is an error of them all. Of a
// lone sequence all that the memory lacks is decoded at once; of several, one batch per round, and
// those that still lack more than their quota of a batch do not draft in that round.
class ModelDrafter final : public Drafter {
 public:
    // longest: most tokens of a draft.
    // Throws InvalidArgument and OutOfMemory; ModelError when `model` cannot draft for `target`.
    ModelDrafter(const Model& target, const DraftModelOptions& options, const Header& header,
                 int longest, const ProgressFunction& progress);

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<Proposal> proposals) override;
    void end(SequenceId sequence) override;

    bool costly() const override { return true; }
    int n_behind(SequenceId sequence, int n_tokens) const override;

    Context& context() { return context_; }

 private:
    struct Follower {
        std::vector<Token> tokens;             // of the sequence, and of the draft behind them
        int n_followed = 0;                    // of these, sure to be the sequence's
        int n_cached = 0;                      // of these in the KV memory
        int row = 0;                           // of the logits after the last one
        std::optional<Sampler> sampler;        // of the request, once it has drafted
        std::vector<Distribution> drawn_from;  // [i]: of its draft's token i

        int n_pending() const { return static_cast<int>(tokens.size()) - n_cached; }
    };
    // A draft under way.
    struct Drafting {
        Proposal* proposal;
        Follower* follower;
        int n_now;  // tokens of its sequence in the next decode
    };

    static int n_common(const Follower& follower, TokenSpan prompt);
    void reuse(SequenceId sequence, TokenSpan prompt);
    void follow(const Proposal& proposal, Follower& follower);
    void catch_up();
    void draft();
    void decode();
    bool extend(Proposal& proposal, Follower& follower);

    Context context_;
    DraftModelOptions options_;
    Batch batch_;
    std::map<SequenceId, Follower> followers_;
    std::vector<Drafting> drafting_;  // kept so that no draft allocates
};

}  // namespace specllama
