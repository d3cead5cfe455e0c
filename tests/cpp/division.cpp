#include "system/division.h"

#include <vector>

#include "check.h"

using namespace specllama;

namespace {

// Layers of 10 bytes, of which 7 are experts', and an output of 5 beside an input of 4.
Weights weights_with_experts(int n_layers) {
    Weights weights{.output = 5, .total = 9};
    weights.layers.assign(n_layers, {10, 7});
    weights.total += 10 * n_layers;
    return weights;
}

Weights dense_weights(int n_layers) {
    Weights weights = weights_with_experts(n_layers);
    for (Weights::Layer& layer : weights.layers) layer.of_experts = 0;
    return weights;
}

DeviceMemory all_of(std::uint64_t bytes) { return {bytes, bytes}; }

// Two devices, the first three times the second: what both hold of `n` layers and an output, all of
// which are there, as llama.cpp counts it: layer i goes to the second if i / (n + 1) >= 3/4.
bool naively_fits(const Weights& weights, int n, std::uint64_t first, std::uint64_t second) {
    std::uint64_t of_first = 0;
    std::uint64_t of_second = 0;
    for (int i = 0; i <= n; ++i)
        (4 * i >= 3 * (n + 1) ? of_second : of_first) +=
            i == n ? weights.output : weights.layers[i].bytes;
    return of_first <= first && of_second <= second;
}

}  // namespace

TEST(what_fits_is_not_divided) {
    const Weights weights = dense_weights(4);
    const Load load{weights, 8, 3};  // 40 of layers, 5 of the output, 8 of texts, 3 to compute
    const std::vector enough = {all_of(56)};
    CHECK(divide(load, enough, {}) == undivided(weights, 0));
    CHECK(undivided(weights, 0) == Division{5, 0});
    const std::vector less = {all_of(55)};
    CHECK(!fits(load, undivided(weights, 0), less));
    // The first layer, with its part of the texts, stays.
    CHECK(divide(load, less, {}) == Division{4, 0});
    CHECK(in_main_memory(load, {4, 0}) == 9 + 10 + 2 + 3);
    CHECK(in_main_memory(load, {5, 0}) == 9 + 3);
    CHECK(in_main_memory(load, {0, 0}) == 9 + 40 + 8 + 3);
}

TEST(nothing_goes_to_a_device_that_cannot_hold_the_output) {
    const Weights weights = dense_weights(3);
    const Load load{weights, 0, 2};
    const std::vector little = {all_of(6)};
    CHECK(divide(load, little, {}) == Division{0, 0});
    const std::vector output = {all_of(7)};
    CHECK(divide(load, output, {}) == Division{1, 0});
    CHECK(fits(load, {0, 0}, little));
}

TEST(what_others_need_of_a_device_is_not_used) {
    const Weights weights = dense_weights(2);
    const Load load{weights, 0, 0};
    const std::vector device = {DeviceMemory{.free = 25, .usable = 24}};
    CHECK(divide(load, device, {}) == Division{2, 0});
}

TEST(experts_stay_before_layers_do) {
    const Weights weights = weights_with_experts(4);
    const Load load{weights, 4, 1};  // 50 in all
    for (int n = 0; n <= 4; ++n) {
        const std::vector device = {all_of(50 - 7 * n)};
        CHECK(divide(load, device, {}) == Division{5, n});
        CHECK(in_main_memory(load, {5, n}) == static_cast<std::uint64_t>(9 + 1 + 7 * n));
    }
    // All experts, and the first layer.
    const std::vector device = {all_of(21)};
    CHECK(divide(load, device, {}) == Division{4, 4});
}

TEST(so_many_experts_stay_as_are_asked_for) {
    const Weights weights = weights_with_experts(4);
    const Load load{weights, 0, 0};
    const std::vector enough = {all_of(100)};
    CHECK(divide(load, enough, 2) == Division{5, 2});
    CHECK(divide(load, enough, 99) == Division{5, 99});
    const std::vector less = {all_of(44)};
    CHECK(divide(load, less, 0) == Division{4, 0});
}

TEST(layers_without_experts_are_passed_over) {
    Weights weights = weights_with_experts(4);
    weights.layers[0].of_experts = 0;
    const Load load{weights, 0, 0};
    const std::vector device = {all_of(45 - 1)};
    CHECK(divide(load, device, {}) == Division{5, 2});
}

TEST(each_of_two_devices_holds_its_part) {
    const Weights weights = dense_weights(7);
    const Load load{weights, 0, 0};
    for (std::uint64_t second = 1; second < 40; ++second) {
        const std::vector devices = {all_of(3 * second), all_of(second)};
        CHECK(fits(load, undivided(weights, 0), devices) ==
              naively_fits(weights, 7, 3 * second, second));
    }
    // Each computes.
    const Load computing{weights, 0, 20};
    const std::vector both = {all_of(300), all_of(100)};
    CHECK(fits(computing, undivided(weights, 0), both));
    const std::vector small = {DeviceMemory{300, 79}, DeviceMemory{100, 100}};
    CHECK(!fits(computing, undivided(weights, 0), small));
}
