/* The programs next to this folder share this: a rank as a thread or as a process, calls that must succeed, and the
 * line of results that each rank prints. They use NCCL and CUDA alone, as anybody's program does. */
#pragma once

#include "plugins/nccl/nccl_abi.h"
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

/* One rank of a program; its thread alone uses it. */
typedef struct {
    int rank, size;
    ncclUniqueId ids[4]; /* four names of communicators, the same ones on every rank */
    uint64_t hash;       /* of the results so far, in the order of slc_rank_result's calls */
    uint64_t calls;      /* operations that the rank asked NCCL for, if the program counts them */
} slc_rank;

/* Runs `program` on every rank, with the device of the rank's number as the current one, and prints one line a rank,
 * "rank N results HASH calls N". Arguments: -n RANKS (default `ranks`), --processes: a rank is a process, not a thread.
 * Whatever else is said on the command line is left to the program, in `argc` and `argv`, which are changed.
 * `seconds_at_most` ends a program that hangs. Returns what main returns. */
int slc_ranks_run(int *argc, char **argv, int ranks, unsigned seconds_at_most, void (*program)(slc_rank *));

/* The time limit begins again; for long programs that go on. */
void slc_ranks_alive(void);

/* Takes `bytes` of a result into the rank's hash. */
void slc_rank_result(slc_rank *rank, const void *data, size_t bytes);

/* Ends the process with a message: where, what was asked, what was wrong. */
_Noreturn void slc_rank_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) slc_rank_fail(__FILE__, __LINE__, __VA_ARGS__);                                              \
    } while (0)
#define NCCL(call)                                                                                                     \
    do {                                                                                                               \
        ncclResult_t result_ = (call);                                                                                 \
        CHECK(result_ == ncclSuccess, "%s: %s", #call, ncclGetErrorString(result_));                                   \
    } while (0)
#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        CHECK(error_ == cudaSuccess, "%s: %s", #call, cudaGetErrorString(error_));                                     \
    } while (0)
