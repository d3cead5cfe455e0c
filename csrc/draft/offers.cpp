#include "draft/offers.h"

#include <algorithm>
#include <utility>

namespace specllama {

Offers::Ticket Offers::ticket(SequenceId sequence) const {
    const std::lock_guard lock(mutex_);
    return places_.at(sequence).ticket;
}

void Offers::put(Ticket request, Position position, const Draft& draft) {
    Offer offer(position, draft);
    const std::lock_guard lock(mutex_);
    for (auto& [sequence, place] : places_)
        if (place.ticket == request) {
            place.offer = std::move(offer);
            return;
        }
}

bool Offers::lacks(Ticket request) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(places_, [&](const auto& entry) {
        const Place& place = entry.second;
        return place.ticket == request && !place.offer;
    });
}

void Offers::take(SequenceId sequence, TokenSpan tokens, int n_most, Draft& draft) {
    const std::lock_guard lock(mutex_);
    Place& place = places_.at(sequence);
    if (place.offer) place.offer->add(tokens, n_most, draft);
    place.offer.reset();
}

void Offers::begin(SequenceId sequence, TokenSpan /*prompt*/, TokenSpan /*reference*/) {
    const std::lock_guard lock(mutex_);
    places_[sequence] = {++n_tickets_, {}};
}

void Offers::propose(std::span<Proposal> proposals) {
    const std::lock_guard lock(mutex_);
    for (Proposal& proposal : proposals) {
        Place& place = places_.at(proposal.sequence);
        if (place.offer && !place.offer->add(proposal.tokens, proposal.max_tokens, proposal.draft))
            place.offer.reset();
    }
}

void Offers::end(SequenceId sequence) {
    const std::lock_guard lock(mutex_);
    places_.erase(sequence);
}

Offers::Offer::Offer(Position n_before, const Draft& draft) : position(n_before), ways(1) {
    for (int i = 0; i < draft.size(); ++i)
        ways[0].push_back({draft.tokens[i], draft.evidence[i].confidence});
    for (const Draft::Side& side : draft.sides) {
        if (!side.follows) {
            Way branch(ways[0].begin(), ways[0].begin() + side.depth);
            ways.push_back(std::move(branch));
        }
        ways.back().push_back({side.token, side.evidence.confidence});
    }
}

// Adds what is left of every way that the sequence still follows. A way that also goes on from the
// draft extends its trunk; the others branch off where they differ from it. Returns whether the
// offer may be of use later: the sequence is not there yet, or follows a way to less than its end.
bool Offers::Offer::add(TokenSpan sequence, int n_most, Draft& draft) const {
    const auto n_tokens = static_cast<Position>(sequence.size());
    if (n_tokens < position) return true;
    const auto since = sequence.subspan(position);
    const auto evidence = [](const Step& step) {
        return Evidence{.source = Source::other, .confidence = step.confidence};
    };
    bool goes_on = false;
    for (const Way& way : ways) {
        if (since.size() >= way.size() ||
            !std::ranges::equal(since, std::span(way).first(since.size()), {}, {}, &Step::token))
            continue;
        goes_on = true;
        std::span<const Step> rest = std::span(way).subspan(since.size());
        rest = rest.first(std::min(rest.size(), static_cast<std::size_t>(std::max(n_most, 0))));
        const auto same =
            std::ranges::mismatch(rest, draft.tokens, {}, &Step::token).in1 - rest.begin();
        const bool extends = same == draft.size();
        bool follows = false;
        for (const Step& step : rest.subspan(same))
            if (extends)
                draft.push(step.token, evidence(step));
            else if (std::exchange(follows, true))
                draft.push_behind_side(step.token, evidence(step));
            else
                draft.push_side(static_cast<int>(same), step.token, evidence(step));
    }
    return goes_on;
}

}  // namespace specllama
