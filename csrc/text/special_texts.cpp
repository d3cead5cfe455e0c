#include "text/special_texts.h"

#include <algorithm>
#include <utility>

namespace specllama {

SpecialTexts::SpecialTexts(std::vector<std::string_view> texts) : texts_(std::move(texts)) {
    std::erase_if(texts_, [](std::string_view text) { return text.empty(); });
    std::ranges::sort(texts_);
    for (const std::string_view text : texts_) begins_.set(static_cast<unsigned char>(text[0]));
}

// Length of the longest special text at the beginning of `text`; 0: none.
std::size_t SpecialTexts::longest_at(std::string_view text) const {
    if (!begins_.test(static_cast<unsigned char>(text[0]))) return 0;
    std::size_t longest = 0;
    auto first = texts_.begin();
    auto last = texts_.end();
    // [first, last): those that begin with the first n bytes of `text`; the shortest come first.
    for (std::size_t n = 0; n < text.size() && first != last; ++n) {
        const auto byte = [n](std::string_view one) {
            return one.size() > n ? static_cast<unsigned char>(one[n]) : -1;
        };
        const auto here =
            std::ranges::equal_range(first, last, static_cast<unsigned char>(text[n]), {}, byte);
        first = here.begin();
        last = here.end();
        if (first != last && first->size() == n + 1) longest = n + 1;
    }
    return longest;
}

// The longest occurrence at each place, from left to right.
std::vector<SpecialTexts::Occurrence> SpecialTexts::find(std::string_view text) const {
    std::vector<Occurrence> found;
    for (std::size_t at = 0; at < text.size(); ++at)
        if (const std::size_t length = longest_at(text.substr(at)); length > 0)
            found.push_back({at, length});
    return found;
}

std::vector<SpecialTexts::Run> SpecialTexts::runs(std::string_view text, TextRanges plain) const {
    std::vector<Run> runs;
    std::size_t run = 0;   // beginning of the current run
    std::size_t part = 0;  // beginning of the part after the last special text
    const auto end_part = [&](std::size_t end) {
        const std::string_view between = text.substr(part, end - part);
        if (find(between).empty()) return;
        if (part > run) runs.push_back({text.substr(run, part - run), true});
        runs.push_back({between, false});
        run = end;
    };
    auto next = plain.begin();
    for (std::size_t at = 0; at < text.size();) {
        while (next != plain.end() && next->second <= at) ++next;
        const std::size_t limit = next == plain.end() ? text.size() : next->first;
        if (at >= limit) {
            at = next->second;
        } else if (const std::size_t length = longest_at(text.substr(at, limit - at))) {
            end_part(at);
            part = at += length;
        } else {
            ++at;
        }
    }
    end_part(text.size());
    if (run < text.size() || runs.empty()) runs.push_back({text.substr(run), true});
    return runs;
}

std::vector<std::string_view> SpecialTexts::parts(std::string_view text, std::size_t n_most) const {
    const std::vector<Occurrence> found = find(text);
    std::size_t longest = 0;
    for (const Occurrence& one : found) longest = std::max(longest, one.length);
    const auto certain = [&](std::size_t i) {
        const Occurrence& one = found[i];
        for (std::size_t j = i; j > 0 && found[j - 1].begin + longest > one.begin; --j) {
            const auto& [begin, length] = found[j - 1];
            if (begin + length > one.begin && length >= one.length) return false;
        }
        const std::string_view own = text.substr(one.begin, one.length);
        for (std::size_t j = i + 1; j < found.size() && found[j].begin < one.begin + one.length;
             ++j) {
            const auto& [begin, length] = found[j];
            if (length > one.length || (length == one.length && text.substr(begin, length) != own))
                return false;
        }
        return true;
    };
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    std::size_t n = 0;  // occurrences in the part
    for (std::size_t i = 0; i < found.size(); ++i, ++n) {
        if (n < n_most || !certain(i)) continue;
        parts.push_back(text.substr(begin, found[i].begin - begin));
        begin = found[i].begin;
        n = 0;
    }
    parts.push_back(text.substr(begin));
    return parts;
}

}  // namespace specllama
