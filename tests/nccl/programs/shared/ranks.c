/* Starts ranks as threads or as processes; processes are forked before anything of CUDA or NCCL is called, and get the
 * communicators' names from rank 0 through a pipe. */
#include "tests/nccl/programs/shared/ranks.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_MAX = 16, IDS = 4 };

static void (*rank_program)(slc_rank *);
static unsigned seconds_limit;

void slc_ranks_alive(void)
{
    alarm(seconds_limit); /* SIGALRM ends the process */
}

void slc_rank_fail(const char *file, int line, const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
    fflush(NULL);
    _exit(1);
}

void slc_rank_result(slc_rank *rank, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++) rank->hash = (rank->hash ^ byte[i]) * 0x100000001b3u; /* FNV-1a */
}

static void name_communicators(slc_rank *rank)
{
    for (int i = 0; i < IDS; i++) NCCL(ncclGetUniqueId(&rank->ids[i]));
}

static void *run_rank(void *argument)
{
    slc_rank *rank = argument;
    rank->hash = 0xcbf29ce484222325u;
    CUDA(cudaSetDevice(rank->rank));
    rank_program(rank);
    printf("rank %d results %016llx calls %llu\n", rank->rank, (unsigned long long)rank->hash,
           (unsigned long long)rank->calls);
    fflush(stdout);
    return NULL;
}

static int run_threads(slc_rank *ranks, int count)
{
    pthread_t threads[RANKS_MAX];
    name_communicators(&ranks[0]);
    for (int r = 1; r < count; r++) memcpy(ranks[r].ids, ranks[0].ids, sizeof ranks[0].ids);
    for (int r = 0; r < count; r++)
        CHECK(!pthread_create(&threads[r], NULL, run_rank, &ranks[r]), "rank %d: no thread", r);
    for (int r = 0; r < count; r++) pthread_join(threads[r], NULL);
    return 0;
}

/* A rank's process; it ends as programs do, so that whatever is preloaded sees an orderly end. */
_Noreturn static void run_process(slc_rank *rank, const int names[2])
{
    slc_ranks_alive(); /* a child has no alarm of its parent's */
    if (rank->rank == 0) {
        name_communicators(rank);
        for (int r = 1; r < rank->size; r++)
            CHECK(write(names[1], rank->ids, sizeof rank->ids) == sizeof rank->ids, "a name is not written");
    } else {
        CHECK(read(names[0], rank->ids, sizeof rank->ids) == sizeof rank->ids, "rank 0 gave no name");
    }
    close(names[0]);
    close(names[1]);
    run_rank(rank);
    exit(0);
}

static int run_processes(slc_rank *ranks, int count)
{
    pid_t processes[RANKS_MAX];
    int names[2], failed = 0;
    CHECK(!pipe(names), "no pipe");
    for (int r = 0; r < count; r++) {
        processes[r] = fork();
        CHECK(processes[r] >= 0, "rank %d: no process", r);
        if (processes[r] == 0) run_process(&ranks[r], names);
    }
    close(names[0]);
    close(names[1]);
    for (int r = 0; r < count; r++) {
        int status;
        CHECK(waitpid(processes[r], &status, 0) == processes[r], "rank %d is not waited for", r);
        if (status)
            fprintf(stderr, "rank %d ended with %s %d\n", r, WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        failed |= status != 0;
    }
    return failed;
}

/* Removes `used` arguments at *argv. */
static void take_arguments(int *argc, char **argv, int at, int used)
{
    memmove(argv + at, argv + at + used, (size_t)(*argc - at - used + 1) * sizeof *argv);
    *argc -= used;
}

int slc_ranks_run(int *argc, char **argv, int ranks, unsigned seconds_at_most, void (*program)(slc_rank *))
{
    bool processes = false;
    for (int i = 1; i < *argc;) {
        if (!strcmp(argv[i], "--processes")) {
            processes = true;
            take_arguments(argc, argv, i, 1);
        } else if (!strcmp(argv[i], "-n") && i + 1 < *argc) {
            ranks = atoi(argv[i + 1]);
            take_arguments(argc, argv, i, 2);
        } else {
            i++;
        }
    }
    CHECK(ranks >= 1 && ranks <= RANKS_MAX, "-n %d: give 1 to %d ranks", ranks, RANKS_MAX);
    rank_program = program;
    seconds_limit = seconds_at_most;
    slc_rank all[RANKS_MAX] = {0};
    for (int r = 0; r < ranks; r++) all[r] = (slc_rank){.rank = r, .size = ranks};
    slc_ranks_alive();
    return processes ? run_processes(all, ranks) : run_threads(all, ranks);
}
