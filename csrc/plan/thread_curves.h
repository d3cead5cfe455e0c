#pragma once

#include <map>

#include "plan/cost_curve.h"

namespace specllama {

// A cost curve for each number of threads, since costs with few threads do not predict those with
// many.
class ThreadCurves {
 public:
    // Decodes after this call use n threads. The first call assigns the existing curve to its
    // number. A new number starts from the points of the last curve.
    void set_threads(int n);

    // The curve of the current number of threads, and of the first one.
    CostCurve& now() { return curves_.at(now_); }
    const CostCurve& now() const { return curves_.at(now_); }
    CostCurve& first() { return curves_.at(first_); }

 private:
    static constexpr int kUnknown = 0;

    std::map<int, CostCurve> curves_{{kUnknown, {}}};
    int first_ = kUnknown;
    int now_ = kUnknown;
};

}  // namespace specllama
