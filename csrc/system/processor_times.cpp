#include "system/processor_times.h"

#include <chrono>

#ifdef __linux__
#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <string>
#endif

#ifdef __APPLE__
#include <mach/mach_host.h>
#include <mach/mach_init.h>
#include <unistd.h>
#endif

#if defined(__linux__) || defined(__APPLE__)
#include <sys/resource.h>
#endif

namespace specllama {

namespace {

#if defined(__linux__) || defined(__APPLE__)

double own_seconds() {
    rusage usage{};
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

#endif

#ifdef __linux__

// Adds up the lines "cpuN user nice system idle iowait irq softirq steal" of /proc/stat.
bool add_processors(ProcessorTimes& times) {
    constexpr int kIdle = 3;
    constexpr int kIoWait = 4;
    constexpr int kFields = 8;
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return false;
    const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
    std::ifstream stat("/proc/stat");
    std::string name;
    stat.ignore(std::numeric_limits<std::streamsize>::max(), '\n');  // all processors together
    while (stat >> name && name.starts_with("cpu")) {
        const int cpu = std::stoi(name.substr(3));
        for (int i = 0; i < kFields; ++i) {
            double ticks = 0;
            stat >> ticks;
            if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed)) continue;
            times.total += tick * ticks;
            if (i == kIdle || i == kIoWait) times.idle += tick * ticks;
        }
        stat.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    return times.total > 0;
}

#elif defined(__APPLE__)

bool add_processors(ProcessorTimes& times) {
    host_cpu_load_info_data_t load{};
    mach_msg_type_number_t count = HOST_CPU_LOAD_INFO_COUNT;
    const mach_port_t host = mach_host_self();
    if (host_statistics(host, HOST_CPU_LOAD_INFO, reinterpret_cast<host_info_t>(&load), &count) !=
        KERN_SUCCESS)
        return false;
    const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
    for (const natural_t ticks : load.cpu_ticks) times.total += tick * ticks;
    times.idle = tick * load.cpu_ticks[CPU_STATE_IDLE];
    return true;
}

#endif

}  // namespace

std::optional<ProcessorTimes> processor_times() {
#if defined(__linux__) || defined(__APPLE__)
    ProcessorTimes times;
    if (!add_processors(times)) return {};
    times.own = own_seconds();
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    times.clock = std::chrono::duration<double>(now).count();
    return times;
#else
    return {};
#endif
}

}  // namespace specllama
