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

// Maximum number of tokens to draft for a sequence in a round: in a row, and altogether.
struct DraftLimits {
    int depth = 0;
    int nodes = 0;
};

// A decode by the target, from which the planner learns its cost.
struct Decode {
    int n_rows = 0;
    int n_context = 0;   // mean of its sequences
    double seconds = 0;  // 0: unknown, because it included prompt tokens
    int n_threads = 0;   // 0: not known
};

// A sequence's draft, and the target's verdict on it.
struct Verification {
    Sequence* sequence = nullptr;
    const Tree* draft = nullptr;  // may be empty: the target then gives only the next token
    int n_before = 0;             // tokens of the sequence before the verdict

    // Whether there is a verdict; false if an error ended the sequence before it.
    bool verified = false;
    // The accepted nodes of the draft, each the child of the one before.
    std::vector<int> path;
    // The target's tokens: those of the accepted nodes and the one after them, unless the text
    // ended before it.
    std::vector<Token> tokens;
    // The target's last token, or a negative number that says why there is none (see
    // Sampler::choose).
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

    // The node that the target's next token follows.
    int node() const { return path.empty() ? Tree::kRoot : path.back(); }

    // For the target: commits its next token. Returns whether it should choose another one: the
    // token is in the draft, and the text continues.
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

// The source of the texts' tokens: a model in this process (LocalTarget) or on a server
// (RemoteTarget).
//
// Calls for a sequence: begin; in each round prefill, then limits, verify and rewind; end. The
// Engine makes these calls, from one thread at a time.
class Target {
 public:
    Target() = default;
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;
    virtual ~Target() = default;

    // What can be verified at once, at most `wanted`: for a sequence alone in a round, and for a
    // sequence in the round that prefill() began.
    virtual DraftLimits limits(DraftLimits wanted) const = 0;
    virtual DraftLimits limits(const Sequence& sequence, DraftLimits wanted) const = 0;

    // Seconds of a round besides drafts and decodes, such as a round trip to a server.
    virtual double overhead() const { return 0; }

    // A sequence enters with its prompt, and leaves, done or not. It must live until it has left.
    virtual void begin(Sequence& sequence) = 0;
    virtual void end(Sequence& sequence) = 0;

    // Begins a round of these sequences, which are not done. Decodes prompt tokens, except those
    // that are decoded with the drafts, and sets `ready` to the sequences whose drafts can be
    // verified now. Sequences in their prompt get their first token from an empty draft. Adds to
    // `decodes`. An Error ends the sequences that it concerns (see Sequence::fail).
    virtual void prefill(std::span<Sequence* const> sequences, std::vector<Sequence*>& ready,
                         std::vector<Decode>& decodes) = 0;

    // Verifies as many of the first drafts as can be verified at once, and returns their number (at
    // least one). n_padding: rows that the decode should have in addition (WidthSwitch); a target
    // may ignore them. Adds to `decodes`. An Error ends the sequences that it concerns.
    virtual std::size_t verify(std::span<Verification> drafts, int n_padding,
                               std::vector<Decode>& decodes) = 0;

    // Forgets all but the first `keep` tokens of a sequence, after verify() and before anything
    // else is verified. Sets Sequence::n_cached().
    virtual void rewind(Sequence& sequence, int keep) = 0;

    // Call it after an exception that no call above has handled. Each sequence is then as it was
    // before the call, except for committed tokens.
    virtual void restore() = 0;
};

}  // namespace specllama
