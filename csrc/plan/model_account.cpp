#include "plan/model_account.h"

#include <algorithm>

#include "plan/constants.h"

namespace specllama {

void ModelAccount::add(double saved, double plain, int n_tokens) {
    balance_ += saved;
    balance_ = balance_ > 0 ? balance_ * std::max(1 - n_tokens / tuning::kLongText, 0.0)
                            : std::min(balance_ + tuning::kNegligible * plain, 0.0);
}

}  // namespace specllama
