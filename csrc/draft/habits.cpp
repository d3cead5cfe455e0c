#include "draft/habits.h"

#include <algorithm>

#include "fnv.h"

namespace specllama {

Habits::Place Habits::place(std::string_view text, TokenSpan left) {
    const std::size_t last = text.find_last_not_of(" \t\r\n");
    const std::string_view end = last == text.npos ? text : text.substr(last);
    return fnv1a(left, fnv1a(end.substr(end.size() - std::min(end.size(), kReach))));
}

const Habits::Habit* Habits::find(Place place) const {
    const auto found = habits_.find(place);
    return found == habits_.end() ? nullptr : &found->second;
}

void Habits::learn(Place place, char byte) {
    if (habits_.size() == kMostPlaces && !habits_.contains(place)) habits_.clear();
    const auto [found, is_new] = habits_.try_emplace(place);
    Habit& habit = found->second;
    if (habit.n == kMemory) {
        habit.n /= 2;
        habit.n_right /= 2;
    }
    habit.n += !is_new;
    habit.n_right += !is_new && habit.byte == byte;
    habit.byte = byte;
}

}  // namespace specllama
