#include "gguf/rotation.h"

#include <algorithm>
#include <numeric>

namespace specllama {

std::string rotation_fault(const Rotation& rotation, llama_rope_type type) {
    if (type == LLAMA_ROPE_TYPE_NONE) return "";
    // llama.cpp steps over the turned numbers; if there are none, it stays in place forever.
    if (rotation.n_turned == 0) return "its rope.dimension_count is 0";
    const std::vector<std::int64_t>& sections = rotation.sections;
    if ((type & GGML_ROPE_TYPE_MROPE) == 0 || sections.size() != 4) return "";
    // llama.cpp goes through the pairs modulo the sum of the sections. It asserts that the sum is
    // within the head, and that the positions of a text, the first three, turn anything.
    const auto sum_of = [&](std::ptrdiff_t n) {
        return std::accumulate(sections.begin(), sections.begin() + n, std::int64_t{0});
    };
    if (std::ranges::min(sections) < 0 || sum_of(3) == 0 || sum_of(4) > rotation.head_size)
        return "its rope.dimension_sections do not divide its attention heads of " +
               std::to_string(rotation.head_size) + " numbers";
    return "";
}

}  // namespace specllama
