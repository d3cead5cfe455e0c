#include "grammar/beginnings.h"

#include <algorithm>
#include <string>
#include <vector>

#include "specllama/error.h"

namespace specllama {

namespace {

constexpr std::size_t kMaxWays = 8192;

using Rules = std::vector<Gbnf::Rule>;

bool may_be_empty(const Gbnf::Sequence& sequence, const std::vector<char>& empty) {
    return std::ranges::all_of(
        sequence, [&](Gbnf::Symbol one) { return one != Gbnf::kCharacter && empty[one] != 0; });
}

// [rule]: whether one of its alternatives is empty as it stands.
std::vector<char> plainly_empty(const Rules& rules) {
    std::vector<char> empty(rules.size(), 0);
    for (std::size_t i = 0; i < rules.size(); ++i)
        empty[i] =
            std::ranges::any_of(rules[i].alternatives, [](const auto& one) { return one.empty(); });
    return empty;
}

// [rule]: whether it can match nothing, by itself or through other rules.
std::vector<char> really_empty(const Rules& rules) {
    std::vector<char> empty = plainly_empty(rules);
    for (bool more = true; more;) {
        more = false;
        for (std::size_t i = 0; i < rules.size(); ++i) {
            if (empty[i] != 0) continue;
            empty[i] = std::ranges::any_of(
                rules[i].alternatives, [&](const auto& one) { return may_be_empty(one, empty); });
            more |= empty[i] != 0;
        }
    }
    return empty;
}

// Groups rules that begin with each other into components (Tarjan, "Depth-first search and linear
// graph algorithms", SIAM J. Comput. 1972, section 4), and counts the ways out of each component.
class Beginnings {
 public:
    // tail: whether a rule may begin with itself if nothing follows it there.
    Beginnings(const Rules& rules, const std::vector<char>& empty, bool tail)
        : rules_(rules), empty_(empty), tail_(tail), nodes_(rules.size()) {
        for (std::size_t i = 0; i < rules.size(); ++i)
            if (nodes_[i].index == 0) visit(i);
    }

 private:
    struct Node {
        std::size_t index = 0;      // in the order of visits, from 1 on; 0: not visited yet
        std::size_t lowest = 0;     // lowest index that it leads back to
        std::size_t component = 0;  // 0: not yet known
        std::size_t ways = 0;       // out of its component, once that is known
    };

    // Calls use(symbol, followed) for each symbol that an alternative of the rule may begin with.
    // followed: whether the alternative goes on after that symbol.
    template <typename Use>
    void each_beginning(std::size_t rule, Use use) const {
        for (const Gbnf::Sequence& sequence : rules_[rule].alternatives) {
            std::size_t i = 0;
            for (; i < sequence.size(); ++i) {
                use(sequence[i], i + 1 < sequence.size());
                if (sequence[i] == Gbnf::kCharacter || empty_[sequence[i]] == 0) break;
            }
            if (i == sequence.size()) use(Gbnf::kCharacter, false);  // all of it may be empty
        }
    }

    // The recursion is at most as deep as there are rules: 4096.
    void visit(std::size_t rule) {
        Node& node = nodes_[rule];
        node.index = node.lowest = ++n_visited_;
        open_.push_back(rule);
        each_beginning(rule, [&](Gbnf::Symbol symbol, bool) {
            if (symbol == Gbnf::kCharacter) return;
            const Node& other = nodes_[symbol];
            if (other.index == 0) visit(symbol);
            if (other.component == 0) node.lowest = std::min(node.lowest, other.lowest);
        });
        if (node.lowest == node.index) close(rule);
    }

    void close(std::size_t root) {
        const auto first = std::ranges::find(open_, root);
        ++n_components_;
        for (auto it = first; it != open_.end(); ++it) nodes_[*it].component = n_components_;
        std::size_t ways = 0;
        for (auto it = first; it != open_.end(); ++it) ways += ways_out(*it);
        if (ways > kMaxWays)
            throw InvalidArgument("The grammar's rule \"" + std::string(rules_[root].name) +
                                  "\" can begin in more than 8192 ways, which is too ambiguous: "
                                  "let alternatives that begin alike begin as one.");
        for (auto it = first; it != open_.end(); ++it) nodes_[*it].ways = ways;
        open_.erase(first, open_.end());
    }

    std::size_t ways_out(std::size_t rule) const {
        std::size_t ways = 0;
        each_beginning(rule, [&](Gbnf::Symbol symbol, bool followed) {
            if (symbol == Gbnf::kCharacter) {
                ++ways;
            } else if (nodes_[symbol].component != n_components_) {
                ways += nodes_[symbol].ways;
            } else if (followed || !tail_) {
                throw InvalidArgument("The grammar's rule \"" + std::string(rules_[rule].name) +
                                      "\" begins with itself (left recursion), so there is no end "
                                      "to reading it; let it end with itself.");
            }
        });
        return ways;
    }

    const Rules& rules_;
    const std::vector<char>& empty_;
    const bool tail_;
    std::vector<Node> nodes_;
    std::vector<std::size_t> open_;
    std::size_t n_visited_ = 0;
    std::size_t n_components_ = 0;
};

}  // namespace

void check_beginnings(const Gbnf& grammar) {
    const Rules& rules = grammar.rules;
    // llama.cpp's search for left recursion takes a rule as possibly empty only if one of its
    // alternatives is empty as it stands, and follows each way.
    const std::vector<char> plainly = plainly_empty(rules);
    Beginnings(rules, plainly, false);
    // When it reads a text, it knows all rules that may be empty, and follows one way to a place.
    const std::vector<char> really = really_empty(rules);
    Beginnings(rules, really, true);
}

}  // namespace specllama
