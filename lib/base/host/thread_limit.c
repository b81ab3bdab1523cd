/* tests/faults/narrow_host_test.c covers this file. */
#include "lib/base/host/thread_limit.h"

#include "lib/base/status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

sluice_status slc_thread_limit_error(int error, const char *what)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    char most[64] = "no limit";
    if (error != EAGAIN) return slc_error(SLUICE_ERR_SYSTEM, "%s: %s", what, strerror(error));
    getrlimit(RLIMIT_NPROC, &limit);
    if (limit.rlim_cur != RLIM_INFINITY) snprintf(most, sizeof most, "%llu", (unsigned long long)limit.rlim_cur);
    return slc_error(
        SLUICE_ERR_SYSTEM,
        "%s: %s: too many processes and threads: the limit is %s for this user's (ulimit -u), and that of a "
        "container or service may be lower (pids.max, TasksMax); raise it, or start fewer ranks or threads",
        what, strerror(error), most);
}
