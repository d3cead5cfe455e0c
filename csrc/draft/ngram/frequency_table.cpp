#include "draft/ngram/frequency_table.h"

#include <algorithm>

#include "fnv.h"

namespace specllama {

namespace {

std::uint32_t pair_hash(std::uint32_t context, Token token) {
    return fold(std::uint64_t{context} << 32 | static_cast<std::uint32_t>(token));
}

}  // namespace

FrequencyTable::Index FrequencyTable::find_context(std::uint64_t hash) const {
    return by_hash_.find(fold(hash), [&](Index i) { return contexts_[i].hash == hash; });
}

FrequencyTable::Index FrequencyTable::find_continuation(Index context, Token token) const {
    // Most contexts are followed by their most frequent token, so it is compared before hashing.
    const Index best = contexts_[context].best;
    if (best != kNone && continuations_[best].token == token) return best;
    return by_token_.find(pair_hash(context, token), [&](Index i) {
        return continuations_[i].context == context && continuations_[i].token == token;
    });
}

void FrequencyTable::count(std::uint64_t hash, Token token, std::uint32_t position) {
    Index context = find_context(hash);
    Index continuation = kNone;
    if (context != kNone) {
        if (context != newest_) {
            unlink(context);
            link_newest(context);
        }
        continuation = find_continuation(context, token);
    }
    if (continuation == kNone) {
        while (continuations_.full()) {
            // This context is the newest, so it is evicted only if it alone fills the table.
            if (oldest_ == context) context = kNone;
            remove_context(oldest_);
        }
        if (context == kNone) context = add_context(hash, position);
        continuation = add_continuation(context, token);
    }

    Continuation& counted = continuations_[continuation];
    ++counted.count;
    counted.position = position;
    Context& owner = contexts_[context];
    ++owner.total;
    if (owner.best == kNone || counted.count >= continuations_[owner.best].count)
        owner.best = continuation;
}

void FrequencyTable::forget(std::uint64_t hash, Token token, std::uint32_t position) {
    const Index context = find_context(hash);
    if (context == kNone || position < contexts_[context].born) return;
    const Index continuation = find_continuation(context, token);
    Context& owner = contexts_[context];
    if (owner.total == 1) {
        remove_context(context);
        return;
    }
    --owner.total;
    if (--continuations_[continuation].count == 0) remove_continuation(continuation);
    if (owner.best == continuation) find_best(owner);
}

FrequencyTable::Best FrequencyTable::best(std::uint64_t hash) const {
    const Index context = find_context(hash);
    if (context == kNone) return {};
    const Continuation& best = continuations_[contexts_[context].best];
    return {best.token, best.count, contexts_[context].total};
}

FrequencyTable::Best FrequencyTable::second(std::uint64_t hash) const {
    const Index context = find_context(hash);
    if (context == kNone) return {};
    const Context& owner = contexts_[context];
    Best found{.total = owner.total};
    int n = 0;
    for (Index i = owner.first; i != kNone && n < kMaxAlternatives; i = continuations_[i].next) {
        if (i == owner.best) continue;
        ++n;
        const Continuation& one = continuations_[i];
        if (one.count > found.count) found = {one.token, one.count, owner.total};
    }
    return found;
}

void FrequencyTable::frequencies(std::uint64_t hash, Distribution& out) const {
    out.clear();
    const Index context = find_context(hash);
    if (context == kNone) return;
    for (Index i = contexts_[context].first; i != kNone; i = continuations_[i].next)
        out.push_back({continuations_[i].token,
                       static_cast<double>(continuations_[i].count) / contexts_[context].total});
    std::ranges::sort(out, {}, &Outcome::token);
}

void FrequencyTable::find_best(Context& context) const {
    context.best = context.first;
    for (Index i = context.first; i != kNone; i = continuations_[i].next) {
        const Continuation& one = continuations_[i];
        const Continuation& best = continuations_[context.best];
        if (one.count > best.count || (one.count == best.count && one.position > best.position))
            context.best = i;
    }
}

FrequencyTable::Index FrequencyTable::add_context(std::uint64_t hash, std::uint32_t position) {
    const Index index = contexts_.add({hash, 0, position, kNone, kNone, kNone, kNone});
    by_hash_.insert(fold(hash), index);
    link_newest(index);
    return index;
}

FrequencyTable::Index FrequencyTable::add_continuation(Index context, Token token) {
    const Index first = contexts_[context].first;
    const Index index = continuations_.add({context, token, 0, 0, first, kNone});
    if (first != kNone) continuations_[first].previous = index;
    contexts_[context].first = index;
    by_token_.insert(pair_hash(context, token), index);
    return index;
}

void FrequencyTable::remove_continuation(Index index) {
    const Continuation& gone = continuations_[index];
    if (gone.next != kNone) continuations_[gone.next].previous = gone.previous;
    (gone.previous == kNone ? contexts_[gone.context].first : continuations_[gone.previous].next) =
        gone.next;
    by_token_.erase(pair_hash(gone.context, gone.token), index);
    continuations_.remove(index);
}

void FrequencyTable::remove_context(Index index) {
    while (contexts_[index].first != kNone) remove_continuation(contexts_[index].first);
    unlink(index);
    by_hash_.erase(fold(contexts_[index].hash), index);
    contexts_.remove(index);
}

void FrequencyTable::link_newest(Index index) {
    contexts_[index].newer = kNone;
    contexts_[index].older = newest_;
    (newest_ == kNone ? oldest_ : contexts_[newest_].newer) = index;
    newest_ = index;
}

void FrequencyTable::unlink(Index index) {
    const Context& context = contexts_[index];
    (context.newer == kNone ? newest_ : contexts_[context.newer].older) = context.older;
    (context.older == kNone ? oldest_ : contexts_[context.older].newer) = context.newer;
}

std::size_t FrequencyTable::size_bytes() const {
    return contexts_.size_bytes() + continuations_.size_bytes() + by_hash_.size_bytes() +
           by_token_.size_bytes();
}

}  // namespace specllama
