#include "engine/kept_curves.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "plan/cost_curve.h"
#include "plan/curve_file.h"
#include "specllama/device.h"

namespace specllama {

namespace {

std::array<CostCurve*, 2> curves(Planner& planner) {
    return {&planner.cost(), &planner.draft_cost()};
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

void KeptCurves::load(Planner& planner) const {
    for (std::size_t i = 0; i < keys_.size(); ++i)
        if (const auto points = load_curve(keys_[i])) curves(planner)[i]->restore(*points);
}

void KeptCurves::keep(Planner& planner) const {
    for (std::size_t i = 0; i < keys_.size(); ++i)
        if (const CostCurve& curve = *curves(planner)[i]; curve.measured())
            save_curve(keys_[i], curve.points());
}

}  // namespace specllama
