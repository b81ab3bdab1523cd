/* Runs a function as N ranks: one child process each, joined through the environment as a launcher would do it. A child
 * that is not done in time is killed, with all others. Call before any thread is started. */
#pragma once

#include "tests/support/comm/free_port.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

enum { RANKS_MAX = 8, RANK_LEAKS = 23 }; /* RANK_LEAKS is the sanitizer's own exit code */

/* Returns the exit code of a rank (0: passed). A rank that returns 0 must have freed all that it allocated. */
typedef int (*rank_function)(int rank, int size, void *context);

static inline void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static inline void become_rank(int rank, int size, int port)
{
    char token[48];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(token, sizeof token, "test-%d-%d", (int)getppid(), port);
    set_number("RANK", rank);
    set_number("WORLD_SIZE", size);
    set_number("LOCAL_RANK", rank);
    set_number("LOCAL_WORLD_SIZE", size);
    set_number("MASTER_PORT", port);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("SLUICE_JOB_TOKEN", token, 1);
    setenv("OMP_NUM_THREADS", "1", 1);
}

/* Ends a rank. The address sanitizer looks for leaks when a program returns from main or calls exit, which a rank,
 * being a copy of the test program, does not do; so leave_rank makes it look. A rank that failed may have left things
 * allocated. */
static inline void leave_rank(int code)
{
    fflush(NULL);
#if defined(__SANITIZE_ADDRESS__)
    if (!code && __lsan_do_recoverable_leak_check()) code = RANK_LEAKS;
#endif
    _exit(code);
}

static inline void wait_ms(long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* codes[r]: exit code of rank r, 128 + signal, or 124 when it had to be killed after limit_s. */
static inline int run_ranks_codes(int size, rank_function function, void *context, int limit_s, int *codes)
{
    pid_t children[RANKS_MAX];
    int port = free_port(), failed = 0, left = size;
    fflush(NULL);
    for (int r = 0; r < size; r++) {
        codes[r] = -1;
        children[r] = fork();
        if (children[r] == 0) {
            become_rank(r, size, port);
            leave_rank(function(r, size, context));
        }
    }
    for (long ms = 0; left && ms < limit_s * 1000L; ms += 5) {
        for (int r = 0; r < size; r++) {
            int status;
            if (codes[r] >= 0 || children[r] <= 0 || waitpid(children[r], &status, WNOHANG) != children[r]) continue;
            codes[r] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            left--;
        }
        if (left) wait_ms(5);
    }
    for (int r = 0; r < size; r++) {
        if (codes[r] < 0) {
            fprintf(stderr, "rank %d was killed: it had not ended after %d s\n", r, limit_s);
            if (children[r] > 0) kill(children[r], SIGKILL);
            if (children[r] > 0) waitpid(children[r], NULL, 0);
            codes[r] = 124;
        }
        failed += codes[r] != 0;
    }
    return failed;
}

/* The number of ranks that did not pass. */
static inline int run_ranks(int size, rank_function function, void *context, int limit_s)
{
    int codes[RANKS_MAX];
    return run_ranks_codes(size, function, context, limit_s, codes);
}

/* Fails a rank whose condition does not hold, with the place and the library's line. */
#define RANK_CHECK(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: rank %s: %s (%s)\n", __FILE__, __LINE__, getenv("RANK"), #condition,               \
                    sluice_last_error());                                                                              \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)
