#include "tests/support/comm/forked_ranks.h"

#include "tests/support/seed.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <cmocka.h>

uint64_t pick(uint64_t *chance, uint64_t below)
{
    uint64_t z = test_seed(*chance += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

sluice_world_config test_config(int rank, int size, int port)
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

sluice_world_config path_config(int rank, int size, int port, test_path path)
{
    sluice_world_config config = test_config(rank, size, port);
    config.direct = path != MESSAGES;
    if (path == MIXED) setenv("SLUICE_COMM_HOST_ID", rank % 2 ? "odd" : "even", 1);
    return config;
}

void close_rank(sluice_world *world, slc_segment *segment, slc_device *device)
{
    CHECK(!slc_comm_attach(slc_world_comm(world), NULL, NULL, 0));
    slc_segment_destroy(segment);
    slc_device_close(device);
    sluice_world_destroy(world);
}

void ranks_start(ranks *all, int size, int (*body)(int rank, void *argument), void *argument)
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

int exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int ranks_wait(ranks *all)
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

int rank_wait(ranks *all, int rank)
{
    int status = 0;
    waitpid(all->pids[rank], &status, 0);
    all->pids[rank] = 0;
    return exit_code(status);
}

void ranks_outlive(ranks *all, int victim, bool stopped, int code)
{
    for (int rank = 0; rank < all->size; rank++)
        if (rank != victim) assert_int_equal(rank_wait(all, rank), 0);
    if (stopped) kill(all->pids[victim], SIGKILL);
    assert_int_equal(rank_wait(all, victim), code);
}

int run_ranks(int size, int (*body)(int rank, void *argument), void *argument)
{
    ranks all;
    ranks_start(&all, size, body, argument);
    return ranks_wait(&all);
}
