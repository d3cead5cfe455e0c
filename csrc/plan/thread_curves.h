#pragma once

#include <map>

#include "plan/cost_curve.h"

namespace specllama {

// A cost curve for each number of threads that decodes were made with, since what few threads cost
// says little of many.
class ThreadCurves {
 public:
    // From now on decodes use n threads. The curve until the first call becomes that of this
    // number. A new number begins with what is known of the last one.
    void set_threads(int n);

    // The curve of the number of threads now, and of the first one.
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
