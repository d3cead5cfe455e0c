#include "draft/constraint/byte_history.h"

#include <algorithm>

#include "fnv.h"

namespace specllama {

ByteHistory::Context ByteHistory::context(std::string_view text, std::string_view allowed) {
    const std::size_t last = text.find_last_not_of(" \t\r\n");
    const std::string_view end = last == std::string_view::npos ? text : text.substr(last);
    return fnv1a(allowed, fnv1a(end.substr(end.size() - std::min(end.size(), kReach))));
}

const ByteHistory::Entry* ByteHistory::find(Context context) const {
    const auto found = entries_.find(context);
    return found == entries_.end() ? nullptr : &found->second;
}

void ByteHistory::learn(Context context, char byte) {
    if (entries_.size() == kMaxContexts && !entries_.contains(context)) entries_.clear();
    const auto [found, is_new] = entries_.try_emplace(context);
    Entry& entry = found->second;
    if (entry.n == kMemory) {
        entry.n /= 2;
        entry.n_right /= 2;
    }
    entry.n += !is_new;
    entry.n_right += !is_new && entry.byte == byte;
    entry.byte = byte;
}

}  // namespace specllama
