#include "session/cost_cache.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <sstream>

#include "files/cache_folder.h"
#include "llama/kv_type.h"
#include "plan/cost_curve.h"
#include "specllama/device.h"

namespace specllama {

namespace {

constexpr const char* kKind = "curve";
constexpr const char* kPairKind = "pair";

std::optional<CurvePoints> read(const std::string& key) {
    std::istringstream stream(recall(cache_folder(), kKind, key));
    CurvePoints points;
    if (!(stream >> points.context_base >> points.context_per_token >> points.width_switch))
        return {};
    for (double seconds = 0;
         stream >> seconds && std::ssize(points.seconds) < CostCurve::kMaxTokens;)
        points.seconds.push_back(seconds);
    if (points.seconds.empty()) return {};
    return points;
}

void write(const std::string& key, const CurvePoints& points) {
    std::ostringstream text;
    text.precision(std::numeric_limits<double>::max_digits10);
    text << points.context_base << ' ' << points.context_per_token << ' ' << points.width_switch
         << '\n';
    for (const double seconds : points.seconds) text << seconds << '\n';
    remember(cache_folder(), kKind, key, text.str());
}

// The key of the record of a draft model with a target.
std::string pair_key(const CurveKeys& keys) { return keys[1] + ", beside " + keys[0]; }

}  // namespace

std::string curve_key(const Header& header, const ModelOptions& model, const ContextPlan& context,
                      const std::string& kernels) {
    std::string key = "2, llama.cpp " + std::string(llama_cpp_version());  // 2: the format
    for (const Device& device : list_devices(model.rpc)) key += ", " + device.description;
    for (const std::int64_t number :
         {static_cast<std::int64_t>(header.weights.total), std::int64_t{header.n_vocab},
          std::int64_t{header.head_size}, std::int64_t{model.n_gpu_layers.value_or(-1)},
          std::int64_t{model.n_cpu_moe.value_or(0)}, std::int64_t{context.n_threads},
          std::int64_t{context.never_alone}, static_cast<std::int64_t>(context.flash_attn)})
        key += ", " + std::to_string(number);
    for (const float part : model.tensor_split) key += ", " + std::to_string(part);
    return key + ", " + model.device + ", " + kv_type_name(context) + ", " + kernels;
}

void load_curves(const CurveKeys& keys, std::span<CostCurve* const> curves) {
    for (std::size_t i = 0; i < keys.size(); ++i)
        if (const auto points = read(keys[i])) curves[i]->restore(*points);
}

void store_curves(const CurveKeys& keys, std::span<CostCurve* const> curves) {
    for (std::size_t i = 0; i < keys.size(); ++i)
        if (const CostCurve& curve = *curves[i]; curve.measured()) write(keys[i], curve.points());
}

DraftRecord load_draft_record(const CurveKeys& keys) {
    std::istringstream stream(recall(cache_folder(), kPairKind, pair_key(keys)));
    DraftRecord record;
    if (double seconds = 0; stream >> seconds) record.net_gain = seconds;
    for (double number = 0; stream >> number;) record.model_rates.push_back(number);
    return record;
}

void store_draft_record(const CurveKeys& keys, const DraftRecord& record) {
    std::ostringstream text;
    text.precision(std::numeric_limits<double>::max_digits10);
    text << record.net_gain << '\n';
    for (const double number : record.model_rates) text << number << '\n';
    remember(cache_folder(), kPairKind, pair_key(keys), text.str());
}

}  // namespace specllama
