#include "llama/load_progress.h"

#include <utility>

#include "llama/assert_guard.h"
#include "specllama/error.h"

namespace specllama {

bool LoadProgress::call(float fraction, void* self) {
    auto& progress = *static_cast<LoadProgress*>(self);
    if (!std::exchange(progress.begun_, true)) progress.on_begin_();
    if (!progress.function_) return true;
    const AssertGuard::Suspend off;
    try {
        progress.cancelled_ = !progress.function_(fraction);
    } catch (...) {
        progress.thrown_ = std::current_exception();
    }
    return !progress.cancelled_ && !progress.thrown_;
}

void LoadProgress::check(const std::string& path) const {
    if (thrown_) std::rethrow_exception(thrown_);
    if (cancelled_) throw Interrupted("Loading " + path + " was interrupted.");
}

}  // namespace specllama
