#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "specllama/drafter.h"

namespace specllama {

// Drafts that somebody outside has made, left here for their requests.
//
// A draft stays until another replaces it. It is used for as long as the sequence follows its trunk
// or one of its branches, so whoever drafts need not know the last tokens. Safe from any thread.
class Offers final : public Drafter {
 public:
    // Names the request that has a sequence id now; no other request ever gets the same ticket.
    using Ticket = std::uint64_t;
    Ticket ticket(SequenceId sequence) const;

    // Leaves a draft of what may follow the first `position` tokens of a request's sequence. Does
    // nothing when the request is over.
    void put(Ticket request, Position position, const Draft& draft);
    // Whether a request is under way and has no draft, not even an empty one.
    bool lacks(Ticket request) const;
    // Adds to `draft` what the offer has after `tokens`, at most n_most tokens in a row, and
    // forgets the offer.
    void take(SequenceId sequence, TokenSpan tokens, int n_most, Draft& draft);

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<Proposal> proposals) override;
    void end(SequenceId sequence) override;

 private:
    // The offered draft as complete ways from `position` on, the trunk first.
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
