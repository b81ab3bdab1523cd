/* Private to tests/nccl/bed/hostnccl: ranks for tests of the small NCCL, as threads of this process or as processes. */
#pragma once

#include <cuda_runtime_api.h>
#include "plugins/nccl/nccl_abi.h"
#include <stdio.h>
#include <stdlib.h>

/* Ends the process if it does not hold; cmocka's assertions would leave the wrong thread. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s does not hold; the last error: %s\n", __FILE__, __LINE__, #condition,           \
                    ncclGetLastError(NULL));                                                                           \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Sanitizers make everything slow: such builds do less of the same. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

typedef struct {
    int rank, size;
    ncclComm_t comm;
    cudaStream_t stream;
    const void *argument;
} test_rank;

typedef void rank_body(test_rank *rank);

/* Runs the body once for each rank, in a thread with its own device, communicator and stream; these are there before
 * and go after it. A body that ends its communicator itself sets `comm` to NULL. */
void ranks_run_threads(int size, rank_body *body, const void *argument);

/* Runs the body once for each rank in a process of its own: this program starts itself again, and its main must call
 * ranks_enter first. `body` is one of those that ranks_enter gets. There is no argument. */
void ranks_run_processes(int size, rank_body *body);

/* Runs a rank and ends the process if ranks_run_processes started it. `bodies` ends with NULL. */
void ranks_enter(int argc, char **argv, rank_body *const *bodies);

/* Starts one rank as a process, and returns its pid. */
int ranks_start_process(const ncclUniqueId *id, int rank, int size, rank_body *body);

/* device_copy returns memory of the current device with a copy of `bytes` bytes; device_read copies back. */
void *device_copy(const void *from, size_t bytes);
void device_read(void *to, const void *from, size_t bytes);

void sleep_ms(int ms);
double clock_ms(void);
