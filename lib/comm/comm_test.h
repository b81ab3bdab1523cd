/* Tests of several ranks, each of which is a forked child on loopback. A test forks before it starts any thread; a
 * child that hangs ends by its alarm, and the parent ends all children when one fails. */
#ifndef SLC_COMM_TEST_H
#define SLC_COMM_TEST_H

#include "lib/comm/comm.h"
#include "lib/comm/join/free_port_test.h"
#include "tests/support/seed.h"

#include <sluice/world.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_MAX = 8 };

/* How ranks reach each other; MIXED imitates two hosts. */
typedef enum { DIRECT, MESSAGES, MIXED } test_path;

static inline uint64_t pick(uint64_t *chance, uint64_t below)
{
    uint64_t z = test_seed(*chance += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

/* For a child: says what failed and ends it. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, sluice_last_error());                  \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

typedef struct {
    pid_t pids[RANKS_MAX];
    int size;
} ranks;

static inline sluice_world_config test_config(int rank, int size, int port)
{
    return (sluice_world_config){.struct_size = sizeof(sluice_world_config),
                                 .rank = rank,
                                 .size = size,
                                 .local_rank = -1,
                                 .local_size = -1,
                                 .master_addr = "127.0.0.1",
                                 .master_port = port,
                                 .job_token = "test",
                                 .transport = "ucx",
                                 .throttle = "",
                                 .direct = 1,
                                 .join_timeout_s = 30,
                                 .timeout_s = 30};
}

static inline sluice_world_config path_config(int rank, int size, int port, test_path path)
{
    sluice_world_config config = test_config(rank, size, port);
    config.direct = path != MESSAGES;
    if (path == MIXED) setenv("SLUICE_COMM_HOST_ID", rank % 2 ? "odd" : "even", 1);
    return config;
}

/* In a child: closes what a rank with attached memory has opened. */
static inline void close_rank(sluice_world *world, slc_segment *segment, slc_device *device)
{
    CHECK(!slc_comm_attach(slc_world_comm(world), NULL, NULL, 0));
    slc_segment_destroy(segment);
    slc_device_close(device);
    sluice_world_destroy(world);
}

/* Runs body(rank, argument) in `size` children; the child's exit status is what it returns. */
static inline void ranks_start(ranks *all, int size, int (*body)(int rank, void *argument), void *argument)
{
    fflush(NULL);
    all->size = size;
    for (int rank = 0; rank < size; rank++) {
        all->pids[rank] = fork();
        if (all->pids[rank]) continue;
        alarm(120);
        setenv("UCX_NET_DEVICES", "lo", 0);
        exit(body(rank, argument));
    }
}

static inline int exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Waits for all children and returns 0, or ends the others and returns the code of the first that did not end with 0.
 */
static inline int ranks_wait(ranks *all)
{
    int code = 0;
    for (int left = all->size; left > 0; left--) {
        int status = 0;
        pid_t pid = 0;
        for (int rank = 0; !pid; rank = (rank + 1) % all->size) {
            if (all->pids[rank] && waitpid(all->pids[rank], &status, WNOHANG) == all->pids[rank]) {
                pid = all->pids[rank];
                all->pids[rank] = 0;
            } else if (rank + 1 == all->size)
                usleep(2000);
        }
        if (!exit_code(status) || code) continue;
        code = exit_code(status);
        for (int rank = 0; rank < all->size; rank++)
            if (all->pids[rank]) kill(all->pids[rank], SIGKILL);
    }
    return code;
}

/* Waits for one rank and returns its exit code. */
static inline int rank_wait(ranks *all, int rank)
{
    int status = 0;
    waitpid(all->pids[rank], &status, 0);
    all->pids[rank] = 0;
    return exit_code(status);
}

static inline int run_ranks(int size, int (*body)(int rank, void *argument), void *argument)
{
    ranks all;
    ranks_start(&all, size, body, argument);
    return ranks_wait(&all);
}

#endif
