#include "engine/kept_curves.h"

#include <cstdint>
#include <utility>

#include "plan/cost_curve.h"
#include "plan/curve_file.h"
#include "specllama/device.h"

namespace specllama {

namespace {

void load_one(const std::optional<std::string>& key, CostCurve& curve) {
    if (!key) return;
    if (const auto points = load_curve(*key)) curve.restore(*points);
}

void keep_one(const std::optional<std::string>& key, const CostCurve& curve) {
    if (key && curve.measured()) save_curve(*key, curve.points());
}

}  // namespace

std::string curve_key(const Header& header, const ModelOptions& model,
                      const ContextOptions& context, const std::string& kernels) {
    std::string key = "llama.cpp " + std::string(llama_cpp_version());
    for (const Device& device : list_devices(model.rpc)) key += ", " + device.description;
    for (const std::int64_t number :
         {static_cast<std::int64_t>(header.weight_bytes), std::int64_t{header.n_vocab},
          std::int64_t{header.head_size}, std::int64_t{model.n_gpu_layers.value_or(-1)},
          std::int64_t{context.n_threads}, std::int64_t{context.never_alone},
          static_cast<std::int64_t>(context.flash_attn)})
        key += ", " + std::to_string(number);
    return key + ", " + model.device + ", " + context.kv_type.value_or("f16") + ", " + kernels;
}

KeptCurves::KeptCurves(std::string target, std::optional<std::string> draft)
    : target_(std::move(target)), draft_(std::move(draft)) {}

void KeptCurves::load(Planner& planner) const {
    load_one(target_, planner.cost());
    load_one(draft_, planner.draft_cost());
}

void KeptCurves::keep(Planner& planner) const {
    keep_one(target_, planner.cost());
    keep_one(draft_, planner.draft_cost());
}

}  // namespace specllama
