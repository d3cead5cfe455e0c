#include "system/host.h"

#include <algorithm>
#include <cstddef>
#include <thread>

#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

#ifdef __x86_64__
#include <cpuid.h>
#endif

#ifdef __linux__
#include <sched.h>

#include <cmath>
#include <fstream>
#include <optional>
#include <set>
#endif

namespace specllama {

namespace {

#ifdef __linux__

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// Whether `cpu` is in a kernel list such as "0-3,8".
bool in_list(const std::string& list, int cpu) {
    for (std::size_t at = 0; at < list.size();) {
        std::size_t used = 0;
        const int low = std::stoi(list.substr(at), &used);
        int high = low;
        at += used;
        if (at < list.size() && list[at] == '-') {
            high = std::stoi(list.substr(at + 1), &used);
            at += used + 1;
        }
        if (low <= cpu && cpu <= high) return true;
        ++at;
    }
    return false;
}

int detect_cores() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 0;
    // Only hybrid processors have this list.
    const std::string fast = first_line("/sys/devices/cpu_core/cpus");
    std::set<std::string> cores;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed) || (!fast.empty() && !in_list(fast, cpu))) continue;
        const std::string siblings = first_line(
            "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
        cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
    }
    int n = cores.empty() ? CPU_COUNT(&allowed) : static_cast<int>(cores.size());

    // "QUOTA PERIOD" in microseconds, or "max PERIOD".
    std::ifstream cgroup("/sys/fs/cgroup/cpu.max");
    double quota = 0;
    double period = 0;
    if (cgroup >> quota >> period && period > 0)
        n = std::min(n, std::max(1, static_cast<int>(std::lround(quota / period))));
    return n;
}

std::uint64_t free_in_machine() {
    std::ifstream meminfo("/proc/meminfo");
    std::string key;
    std::uint64_t kib = 0;
    std::string unit;
    while (meminfo >> key >> kib >> unit)
        if (key == "MemAvailable:") return kib * 1024;
    return 0;
}

// Bytes that the container may still allocate. Cached file contents count as free, since the kernel
// can release them. None: no container limit is known.
std::optional<std::uint64_t> free_in_container(const std::string& cgroup) {
    std::uint64_t most = 0;
    std::uint64_t used = 0;
    // Without a limit, memory.max contains "max".
    if (!(std::ifstream(cgroup + "/memory.max") >> most) ||
        !(std::ifstream(cgroup + "/memory.current") >> used))
        return std::nullopt;
    std::ifstream stat(cgroup + "/memory.stat");
    std::string key;
    for (std::uint64_t bytes = 0; stat >> key >> bytes;)
        if (key == "inactive_file") used -= std::min(used, bytes);
    return most - std::min(most, used);
}

std::uint64_t detect_memory(const std::string& cgroup) {
    const std::uint64_t free = free_in_machine();
    return std::min(free, free_in_container(cgroup).value_or(free));
}

#elif defined(__APPLE__)

int detect_cores() {
    for (const char* name : {"hw.perflevel0.physicalcpu", "hw.physicalcpu"}) {
        int n = 0;
        std::size_t size = sizeof(n);
        if (sysctlbyname(name, &n, &size, nullptr, 0) == 0 && n > 0) return n;
    }
    return 0;
}

// All memory of the machine: macOS frees its caches on demand and has no single number for free
// memory.
std::uint64_t detect_memory(const std::string& /*cgroup*/) {
    std::uint64_t bytes = 0;
    std::size_t size = sizeof(bytes);
    return sysctlbyname("hw.memsize", &bytes, &size, nullptr, 0) == 0 ? bytes : 0;
}

#else

int detect_cores() { return 0; }

std::uint64_t detect_memory(const std::string& /*cgroup*/) { return 0; }

#endif

}  // namespace

int performance_cores() {
    const int n = detect_cores();
    return n > 0 ? n : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::uint64_t memory_available(const std::string& cgroup) { return detect_memory(cgroup); }

bool has_avx512_fp16() {
#ifdef __x86_64__
    constexpr unsigned kFeatures = 7;
    constexpr unsigned kFp16 = 1U << 23;
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid_count(kFeatures, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kFp16) != 0;
#else
    return false;
#endif
}

}  // namespace specllama
