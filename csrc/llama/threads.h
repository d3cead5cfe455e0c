#pragma once

namespace specllama {

// Performance cores that this process may use, at least 1: affinity masks, container CPU quotas,
// efficiency cores and hyper-threads are taken off.
int performance_cores();

}  // namespace specllama
