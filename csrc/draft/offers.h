#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "specllama/drafter.h"

namespace specllama {

// Drafts that somebody outside has made, left here for the requests they are for.
//
// A draft stands until another takes its place, and is good for as long as the sequence takes a way
// that it foresees, by its trunk or by a branch: whoever drafts need not know the last tokens. Safe
// from any thread.
class Offers final : public Drafter {
 public:
    // Names the request that has a sequence id now; no other ever has this name.
    using Ticket = std::uint64_t;
    Ticket ticket(SequenceId sequence) const;

    // What may follow the first `position` tokens of a request's sequence; nothing happens when it
    // is over.
    void put(Ticket request, Position position, const Draft& draft);
    // Whether there is a draft for a sequence, be it empty.
    bool has(SequenceId sequence) const;
    // Adds to a draft what goes on from `tokens`, at most n_most tokens in a row, and forgets it.
    void take(SequenceId sequence, TokenSpan tokens, int n_most, Draft& draft);

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<Proposal> proposals) override;
    void end(SequenceId sequence) override;

 private:
    // Ways that the sequence may take, from `position` on, the trunk first.
    struct Offer {
        struct Step {
            Token token;
            float confidence;
        };
        using Way = std::vector<Step>;

        Offer(Position n_before, const Draft& draft);
        bool add(TokenSpan sequence, int n_most, Draft& draft) const;

        Position position;
        std::vector<Way> ways;
    };

    struct Place {
        Ticket ticket = 0;
        std::optional<Offer> offer;
    };

    mutable std::mutex mutex_;
    std::map<SequenceId, Place> places_;
    Ticket n_tickets_ = 0;
};

}  // namespace specllama
