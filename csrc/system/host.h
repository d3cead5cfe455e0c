#pragma once

#include <cstdint>
#include <string>

namespace specllama {

// Resources of the machine for this process.

// Performance cores that this process may use, at least 1. Respects affinity masks and CPU quotas
// of containers. Efficiency cores and hyper-threads are not counted.
int performance_cores();

// Bytes of main memory that this process can allocate without swapping and without exceeding its
// container's limit; 0: unknown. cgroup: folder of the container's limits (Linux).
std::uint64_t memory_available(const std::string& cgroup = "/sys/fs/cgroup");

// Whether the processor has AVX-512 instructions for 16-bit floats (AVX-512 FP16). Intel's
// processors with AMX have them.
bool has_avx512_fp16();

}  // namespace specllama
