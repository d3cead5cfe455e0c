#include "text/special_texts.h"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.h"

namespace specllama {

namespace {

// The special texts that a tokenizer finds in a text, and the text between them, in order. The
// longest special text is searched first, from left to right.
std::vector<std::string> found(std::string_view text, std::vector<std::string_view> special) {
    std::ranges::stable_sort(special, [](auto a, auto b) { return a.size() > b.size(); });
    struct Fragment {
        std::string_view text;
        bool is_token;
    };
    std::vector<Fragment> fragments{{text, false}};
    for (const std::string_view one : special) {
        std::vector<Fragment> next;
        for (Fragment fragment : fragments) {
            std::size_t at = 0;
            while (!fragment.is_token && (at = fragment.text.find(one)) != std::string_view::npos) {
                if (at > 0) next.push_back({fragment.text.substr(0, at), false});
                next.push_back({one, true});
                fragment.text.remove_prefix(at + one.size());
            }
            if (fragment.is_token || !fragment.text.empty()) next.push_back(fragment);
        }
        fragments = next;
    }
    std::vector<std::string> result;
    for (const Fragment& one : fragments)
        result.push_back((one.is_token ? "token " : "text ") + std::string(one.text));
    return result;
}

}  // namespace

TEST(parts_have_the_special_texts_of_the_whole_text) {
    const std::vector<std::string_view> special{"a",  "aa",  "aaaa", "ab",
                                                "ba", "abc", "<b>",  "b><b"};
    std::mt19937 random(1);
    int n_cut = 0;
    for (int round = 0; round < 3000; ++round) {
        std::string text;
        const std::size_t length = random() % 80;
        while (text.size() < length) text += "aaabc<>  "[random() % 9];
        if (round % 3 == 0) text += "<b><b><b>aaaaaaaaaaaaaaaaaa  aaaa aaaab";
        const SpecialTexts texts(special);
        for (const std::size_t n_most : {0, 1, 3}) {
            std::string joined;
            std::vector<std::string> of_parts;
            const std::vector<std::string_view> parts = texts.parts(text, n_most);
            for (const std::string_view part : parts) {
                joined += part;
                const auto here = found(part, special);
                of_parts.insert(of_parts.end(), here.begin(), here.end());
            }
            CHECK(joined == text);
            CHECK(of_parts == found(text, special));
            n_cut += static_cast<int>(parts.size()) - 1;
        }
    }
    CHECK(n_cut > 10'000);
}

TEST(parts_between_special_texts_are_short) {
    const SpecialTexts texts({"    ", "   ", "  ", " "});
    std::string text;
    for (int line = 0; line < 1000; ++line) text += "    x=1\n";
    CHECK(texts.parts(text, 40).size() == 100);  // each line has four occurrences
}

TEST(runs_do_not_parse_special_texts_in_plain_parts) {
    const SpecialTexts texts({"<s>", "</s>"});
    const auto runs = [&](std::string_view text,
                          std::vector<std::pair<std::size_t, std::size_t>> plain) {
        std::string written;
        for (const auto& [part, parse_special] : texts.runs(text, plain))
            written += (parse_special ? "special " : "plain ") + std::string(part) + "\n";
        return written;
    };
    CHECK(runs("<s>a</s>b", {}) == "special <s>a</s>b\n");
    CHECK(runs("<s>a</s>b", {{3, 4}, {8, 9}}) ==
          "special <s>a</s>b\n");  // the plain parts have no special texts
    CHECK(runs("<s>a<s>b</s>c", {{4, 7}}) == "special <s>\nplain a<s>b\nspecial </s>c\n");
    CHECK(runs("<s>", {{0, 3}}) == "plain <s>\n");
    CHECK(runs("<s>", {{1, 2}}) == "plain <s>\n");  // a part of it is enough
    CHECK(runs("<s>", {{3, 3}}) == "special <s>\n");
    CHECK(runs("a<s>b</s>", {{1, 2}}) == "plain a<s>b\nspecial </s>\n");
    CHECK(runs("</s><s>x", {{0, 4}}) == "plain </s>\nspecial <s>x\n");
    CHECK(runs("", {}) == "special \n");
    CHECK(SpecialTexts().runs("a", {})[0].text == "a");
}

TEST(a_text_without_special_texts_is_one_part) {
    CHECK(SpecialTexts().parts("abc", 1) == std::vector<std::string_view>{"abc"});
    CHECK(SpecialTexts({"", "x"}).parts("abc", 0) == std::vector<std::string_view>{"abc"});
    CHECK(SpecialTexts({"x"}).parts("", 0) == std::vector<std::string_view>{""});
}

}  // namespace specllama
