#pragma once

#include <cstdint>
#include <string>

namespace specllama {

// What the machine offers this process.

// Performance cores that this process may use, at least 1. Affinity masks and container CPU quotas
// are respected; efficiency cores and hyper-threads are not counted.
int performance_cores();

// Bytes of main memory that this process can take without swapping, and without being killed for
// exceeding its container's limit; 0: not known. cgroup: the folder where Linux states the
// container's limits.
std::uint64_t memory_available(const std::string& cgroup = "/sys/fs/cgroup");

// Whether the processor has AVX-512 instructions for 16-bit floats (AVX-512 FP16). Intel's
// processors with AMX have them.
bool has_avx512_fp16();

}  // namespace specllama
