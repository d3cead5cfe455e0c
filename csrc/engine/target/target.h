#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "draft/tree.h"
#include "engine/sequence.h"
#include "specllama/types.h"
#include "system/clock.h"

namespace specllama {

// Most tokens to draft for a sequence in a round: in a row, and altogether.
struct DraftLimits {
    int depth = 0;
    int nodes = 0;
};

// A decode by the target, for what the planner learns of its cost.
struct Decode {
    int n_rows = 0;
    int n_context = 0;   // mean of its sequences
    double seconds = 0;  // 0: it held prompt tokens, so its time says nothing about rounds
    int n_threads = 0;   // 0: not known
};

// A sequence's draft, and the target's verdict on it.
struct Verification {
    Sequence* sequence = nullptr;
    const Tree* draft = nullptr;  // may be empty: the target then gives the next token only
    int n_before = 0;             // tokens of the sequence before the verdict

    // Whether there is a verdict: false if the sequence ended before it, by an error.
    bool verified = false;
    // The accepted nodes of the draft, each the child of the one before.
    std::vector<int> path;
    // The target's tokens: those of the accepted nodes and the one after them, which is missing if
    // the text ended before.
    std::vector<Token> tokens;
    // The target's last token, or why there is none: a negative number as Sampler::choose has it.
    Token last = kNoToken;
    double seconds = 0;  // of the decode

    void begin(Sequence& of, const Tree& its_draft) {
        sequence = &of;
        draft = &its_draft;
        n_before = of.n_tokens();
        verified = false;
        path.clear();
        tokens.clear();
        last = kNoToken;
        seconds = 0;
    }

    // The node after which the target's next token comes.
    int node() const { return path.empty() ? Tree::kRoot : path.back(); }

    // For the target: commits its next token. Returns whether it has more to say, since the token
    // is one of the draft's and the text goes on.
    bool accept(Token token, std::optional<TokenLogprobs> logprobs = {}) {
        last = token;
        tokens.push_back(token);
        const int child = draft->child(node(), token);
        const bool agrees = child != Tree::kNone;
        if (agrees) path.push_back(child);
        const Timer timer(sequence->stats.seconds.text);
        return sequence->commit(token, agrees, std::move(logprobs)) && agrees;
    }
};

// Where the tokens of the texts come from: a model in this process (LocalTarget) or a server.
//
// Calls for a sequence: begin; in each round prefill, then limits, verify and rewind; end. The
// Engine makes these calls, from one thread at a time.
class Target {
 public:
    Target() = default;
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;
    virtual ~Target() = default;

    // What can be verified at once, of `wanted`: for a sequence that has a round to itself, and for
    // a sequence in the round that prefill() began.
    virtual DraftLimits limits(DraftLimits wanted) const = 0;
    virtual DraftLimits limits(const Sequence& sequence, DraftLimits wanted) const = 0;

    // Seconds that a round takes besides drafts and decodes, such as a round trip to a server.
    virtual double overhead() const { return 0; }

    // A sequence enters with its prompt, and leaves, done or not; it must live until then.
    virtual void begin(Sequence& sequence) = 0;
    virtual void end(Sequence& sequence) = 0;

    // Begins a round of these sequences, which are not done. Decodes prompt tokens, as far as they
    // do not come with the drafts, and sets `ready` to the sequences that can have a draft verified
    // now: those in their prompt get their first token from an empty draft. Adds to `decodes`. An
    // Error ends the sequences that it concerns, see Sequence::fail.
    virtual void prefill(std::span<Sequence* const> sequences, std::vector<Sequence*>& ready,
                         std::vector<Decode>& decodes) = 0;

    // Verifies the first of the drafts, as many as it verifies at once, and returns how many, at
    // least one. n_padding: rows that the decode should have in addition (WidthSwitch); a target
    // may ignore them. Adds to `decodes`. An Error ends the sequences that it concerns.
    virtual std::size_t verify(std::span<Verification> drafts, int n_padding,
                               std::vector<Decode>& decodes) = 0;

    // Forgets all but the first `keep` tokens of a sequence, after verify() and before anything
    // else is verified. Sets Sequence::n_cached().
    virtual void rewind(Sequence& sequence, int keep) = 0;

    // After an exception that no call above has handled: each sequence is as it was before the
    // call, but for the tokens that were committed.
    virtual void restore() = 0;
};

}  // namespace specllama
