#pragma once

#include <cstdint>
#include <string>

namespace specllama {

// What the machine has for us.

// Performance cores that this process may use, at least 1: affinity masks, container CPU quotas,
// efficiency cores and hyper-threads are taken off.
int performance_cores();

// Bytes of main memory that can be taken without swapping, or without being ended by the container
// that we are in; 0 when that is not known. cgroup: the folder in which Linux says of the container
// what it may have.
std::uint64_t memory_available(const std::string& cgroup = "/sys/fs/cgroup");

// Whether the processor has AVX-512 instructions for numbers of 16 bits, as Intel's have that have
// AMX.
bool has_avx512_fp16();

}  // namespace specllama
