#include "system/layer_split.h"

#include <vector>

#include "check.h"

using namespace specllama;

namespace {

// Layers of 10 bytes, 7 of which are experts; an output of 5 bytes and an input of 4.
Weights weights_with_experts(int n_layers) {
    Weights weights;
    weights.output = 5;
    weights.total = 9 + 10 * n_layers;
    weights.layers.assign(n_layers, {.bytes = 10, .of_experts = 7});
    return weights;
}

Weights dense_weights(int n_layers) {
    Weights weights = weights_with_experts(n_layers);
    for (Weights::Layer& layer : weights.layers) layer.of_experts = 0;
    return weights;
}

// A model with `text` bytes of KV memory in each layer.
ModelBytes bytes_of(const Weights& weights, std::uint64_t text, std::uint64_t compute) {
    return {weights, std::vector<std::uint64_t>(weights.layers.size(), text), compute};
}

DeviceMemory all_of(std::uint64_t bytes) { return {bytes, bytes}; }

LayerSplit layer_split(int n_gpu_layers, int n_cpu_moe = 0) {
    return {n_gpu_layers, n_cpu_moe, {}};
}

// Whether `n` layers and an output fit on two devices, the first three times as large. As in
// llama.cpp, layer i goes to the second if i / (n + 1) >= 3/4.
bool naively_fits(const Weights& weights, int n, std::uint64_t first, std::uint64_t second) {
    std::uint64_t of_first = 0;
    std::uint64_t of_second = 0;
    for (int i = 0; i <= n; ++i)
        (4 * i >= 3 * (n + 1) ? of_second : of_first) +=
            i == n ? weights.output : weights.layers[i].bytes;
    return of_first <= first && of_second <= second;
}

}  // namespace

TEST(models_that_fit_a_device_are_not_divided) {
    const Weights weights = dense_weights(4);
    const ModelBytes need = bytes_of(weights, 2, 3);  // 40 layers, 5 output, 8 KV memory
    const std::vector enough = {all_of(56)};
    CHECK(divide(need, {}, enough) == layer_split(5));
    CHECK(whole(need, 0, enough) == layer_split(5));
    const std::vector less = {all_of(55)};
    CHECK(!whole(need, 0, less));
    // The first layer stays, with its KV memory.
    CHECK(divide(need, {}, less) == layer_split(4));
    CHECK(in_main_memory(need, layer_split(4)) == 4 + 10 + 2 + 3);
    CHECK(in_main_memory(need, layer_split(5)) == 4 + 3);
    CHECK(in_main_memory(need, layer_split(0)) == 9 + 40 + 8 + 3);
}

TEST(a_tied_output_is_in_both_memories) {
    Weights weights = dense_weights(2);
    weights.is_tied = true;
    weights.output = 4;
    weights.total = 24;
    CHECK(in_main_memory(bytes_of(weights, 0, 0), layer_split(3)) == 4);
    CHECK(in_main_memory(bytes_of(weights, 0, 0), layer_split(0)) == 24);
}

TEST(a_device_without_room_for_the_output_gets_nothing) {
    const Weights weights = dense_weights(3);
    const ModelBytes need = bytes_of(weights, 0, 2);
    const std::vector little = {all_of(6)};
    CHECK(divide(need, {}, little) == layer_split(0));
    const std::vector output = {all_of(7)};
    CHECK(divide(need, {}, output) == layer_split(1));
    CHECK(fits(need, layer_split(0), little));
}

TEST(reserved_memory_of_a_device_is_not_used) {
    const Weights weights = dense_weights(2);
    const std::vector device = {DeviceMemory{.free = 25, .usable = 24}};
    CHECK(divide(bytes_of(weights, 0, 0), {}, device) == layer_split(2));
}

TEST(layers_have_kv_memory_of_different_sizes) {
    const Weights weights = dense_weights(3);
    const ModelBytes need{weights, {0, 30, 0}, 0};  // 65 in total
    const std::vector less = {all_of(64)};
    CHECK(divide(need, {}, less) == layer_split(3));
    const std::vector little = {all_of(54)};
    CHECK(divide(need, {}, little) == layer_split(2));
    CHECK(in_main_memory(need, layer_split(2)) == 4 + 20 + 30);
}

TEST(a_matrix_in_another_memory_costs_a_transfer) {
    Weights weights = weights_with_experts(4);
    for (Weights::Layer& layer : weights.layers) layer.largest = 6;
    const ModelBytes need = bytes_of(weights, 0, 0);  // 45 in total
    const std::vector less = {all_of(44)};
    // Without one layer's experts 38 bytes are left; fetching these needs 6.
    CHECK(divide(need, {}, less) == layer_split(5, 1));
    const std::vector little = {all_of(43)};
    CHECK(divide(need, {}, little) == layer_split(5, 2));
}

TEST(experts_stay_in_main_memory_before_layers) {
    const Weights weights = weights_with_experts(4);
    const ModelBytes need = bytes_of(weights, 1, 1);  // 50 in total
    for (int n = 0; n <= 4; ++n) {
        const std::vector device = {all_of(50 - 7 * n)};
        CHECK(divide(need, {}, device) == layer_split(5, n));
        CHECK(in_main_memory(need, layer_split(5, n)) == static_cast<std::uint64_t>(4 + 1 + 7 * n));
    }
    // All experts and the first layer stay.
    const std::vector device = {all_of(21)};
    CHECK(divide(need, {}, device) == layer_split(4, 4));
}

TEST(the_requested_number_of_experts_stays_in_main_memory) {
    const Weights weights = weights_with_experts(4);
    const ModelBytes need = bytes_of(weights, 0, 0);
    const std::vector enough = {all_of(100)};
    CHECK(divide(need, 2, enough) == layer_split(5, 2));
    CHECK(divide(need, 99, enough) == layer_split(5, 99));
    const std::vector less = {all_of(44)};
    CHECK(divide(need, 0, less) == layer_split(4, 0));
}

TEST(layers_without_experts_are_skipped) {
    Weights weights = weights_with_experts(4);
    weights.layers[0].of_experts = 0;
    const std::vector device = {all_of(45 - 1)};
    CHECK(divide(bytes_of(weights, 0, 0), {}, device) == layer_split(5, 2));
}

TEST(a_split_fits_if_each_device_holds_its_part) {
    const Weights weights = dense_weights(7);
    const ModelBytes need = bytes_of(weights, 0, 0);
    for (std::uint64_t second = 1; second < 40; ++second) {
        const std::vector devices = {all_of(3 * second), all_of(second)};
        CHECK(fits(need, layer_split(8), devices) == naively_fits(weights, 7, 3 * second, second));
    }
    // Each device needs compute memory.
    const ModelBytes computing = bytes_of(weights, 0, 20);
    const std::vector both = {all_of(300), all_of(100)};
    CHECK(fits(computing, layer_split(8), both));
    const std::vector small = {DeviceMemory{300, 79}, DeviceMemory{100, 100}};
    CHECK(!fits(computing, layer_split(8), small));
}

TEST(devices_get_at_most_what_they_hold) {
    // In proportion, the second device would get the output and three layers: 35 bytes.
    const Weights weights = dense_weights(7);
    const ModelBytes need = bytes_of(weights, 0, 0);
    const std::vector devices = {DeviceMemory{100, 60}, DeviceMemory{100, 20}};
    const auto found = whole(need, 0, devices);
    CHECK(found && found->split == std::vector<int>({6, 2}));
    CHECK(fits(need, *found, devices));
    // As few experts as possible stay.
    const Weights experts = weights_with_experts(8);
    const std::vector unequal = {DeviceMemory{50, 20}, DeviceMemory{50, 60}};
    const LayerSplit divided = divide(bytes_of(experts, 0, 0), {}, unequal);
    CHECK(divided == LayerSplit{9, 2, {3, 6}});
}
