/* A library to be preloaded into a program that measures itself: it replaces the monotonic clock by the CPU time of all
 * threads of the program together, which hardly depends on what else runs on the machine. It is for programs in which
 * one thread computes while the others sleep. processor_clock.py builds and loads it.
 * tests/command/measure/peers_test.sh covers this file. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const long SECOND_NS = 1000000000;
static struct timespec begun; /* the true time less what the program had used by then */

/* Runs before main. The clock begins at the true time, so that deadlines which a program computes are not long past. */
__attribute__((constructor)) static void begin(void)
{
    struct timespec used;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begun);
    syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &used);
    begun.tv_sec -= used.tv_sec + 1;
    begun.tv_nsec += SECOND_NS - used.tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    struct timespec used;
    if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, now);
    syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &used);
    const long ns = begun.tv_nsec + used.tv_nsec;
    now->tv_sec = begun.tv_sec + used.tv_sec + ns / SECOND_NS;
    now->tv_nsec = ns % SECOND_NS;
    return 0;
}
