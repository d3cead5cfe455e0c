#include "system/low_priority.h"

#if defined(__linux__)
#include <sys/resource.h>
#elif defined(__APPLE__)
#include <pthread/qos.h>
#endif

namespace specllama {

void lower_priority() {
#if defined(__linux__)
    // On Linux, unlike in POSIX, this sets the calling thread's priority. 19 is the lowest.
    setpriority(PRIO_PROCESS, 0, 19);
#elif defined(__APPLE__)
    pthread_set_qos_class_self_np(QOS_CLASS_BACKGROUND, 0);
#endif
}

}  // namespace specllama
