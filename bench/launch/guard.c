/* The guard waits for the end of a pipe whose other end only the launcher holds. Memory that both share tells it which
 * groups are left. guard_test.c covers this file. */
#include "bench/launch/guard.h"

#include "lib/base/status.h"
#include "lib/base/host/thread_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t bytes_of(int count)
{
    return (size_t)count * sizeof(pid_t);
}

/* Runs in the new process and does not return. */
static void watch(const pid_t *groups, int count, int from)
{
    char byte;
    ssize_t got;
    setpgid(0, 0);
    dup2(from, 0);
    close_range(1, ~0u, 0); /* if a pipe or terminal stayed open here, others would wait for its end */
    do got = read(0, &byte, 1);
    while (got < 0 && errno == EINTR);
    for (int i = 0; i < count; i++) {
        pid_t group = __atomic_load_n(&groups[i], __ATOMIC_ACQUIRE);
        if (group > 0) kill(-group, SIGKILL);
    }
    _exit(0);
}

sluice_status slc_launch_guard_start(const pid_t *groups, int count, slc_launch_guard *out)
{
    int ends[2];
    sluice_status status;
    *out = (slc_launch_guard){.pipe = -1};
    pid_t *shared = mmap(NULL, bytes_of(count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return slc_error(SLUICE_ERR_SYSTEM, "guard: shared memory: %s", strerror(errno));
    memcpy(shared, groups, bytes_of(count));
    if (pipe2(ends, O_CLOEXEC)) {
        status = slc_error(SLUICE_ERR_SYSTEM, "guard: pipe: %s", strerror(errno));
        goto unmap;
    }
    pid_t pid = fork();
    if (pid == 0) watch(shared, count, ends[0]);
    if (pid < 0) {
        status = slc_thread_limit_error(errno, "guard: fork");
        goto close_ends;
    }
    close(ends[0]);
    *out = (slc_launch_guard){.pid = pid, .pipe = ends[1], .count = count, .groups = shared};
    return SLUICE_OK;

close_ends:
    close(ends[0]);
    close(ends[1]);
unmap:
    munmap(shared, bytes_of(count));
    return status;
}

void slc_launch_guard_forget(slc_launch_guard *guard, int rank)
{
    if (guard->pid) __atomic_store_n(&guard->groups[rank], 0, __ATOMIC_RELEASE);
}

void slc_launch_guard_end(slc_launch_guard *guard)
{
    if (!guard->pid) return;
    kill(guard->pid, SIGKILL);
    waitpid(guard->pid, NULL, 0);
    close(guard->pipe);
    munmap(guard->groups, bytes_of(guard->count));
    *guard = (slc_launch_guard){.pipe = -1};
}
