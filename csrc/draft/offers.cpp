#include "draft/offers.h"

#include <algorithm>
#include <utility>

namespace specllama {

Offers::Ticket Offers::ticket(SequenceId sequence) const {
    const std::lock_guard lock(mutex_);
    return places_.at(sequence).ticket;
}

void Offers::put(Ticket request, Position position, std::vector<Token> tokens,
                 std::vector<float> confidence) {
    confidence.resize(tokens.size(), 1.0F);
    const std::lock_guard lock(mutex_);
    for (auto& [sequence, place] : places_)
        if (place.ticket == request)
            place.offer = {position, std::move(tokens), std::move(confidence)};
}

bool Offers::has(SequenceId sequence) const {
    const std::lock_guard lock(mutex_);
    const auto place = places_.find(sequence);
    return place != places_.end() && place->second.offer.has_value();
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

// Whether it may still be of use: the sequence has not left its way, nor come to its end.
bool Offers::Offer::add(TokenSpan sequence, int n_most, Draft& draft) const {
    const auto n_tokens = static_cast<Position>(sequence.size());
    if (n_tokens < position) return true;
    const auto since = sequence.subspan(position);
    if (since.size() >= tokens.size() ||
        !std::ranges::equal(since, TokenSpan(tokens).first(since.size())))
        return false;
    const std::size_t n =
        std::min(tokens.size(), since.size() + static_cast<std::size_t>(std::max(n_most, 0)));
    for (std::size_t i = since.size(); i < n; ++i)
        draft.push(tokens[i], {.source = Source::other, .confidence = confidence[i]});
    return true;
}

}  // namespace specllama
