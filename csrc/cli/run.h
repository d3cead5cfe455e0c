#pragma once

#include "cli/options.h"

namespace specllama::cli {

// Exit codes.
inline constexpr int kOk = 0;
inline constexpr int kFailure = 1;
inline constexpr int kBadUsage = 2;
inline constexpr int kInterrupted = 130;

// Generates a text by the options. Calls interrupted() between rounds, prefill chunks and steps of
// loading. Returns kOk or kInterrupted. Throws UsageError and specllama::Error.
int run(Options options, bool (*interrupted)());

}  // namespace specllama::cli
