/* The small NCCL over the emulated GPU: ranks as threads, each with a GPU, whose memory the host cannot reach.
 * Collectives keep the order of their streams with copies before and after them, and events come after them. */
#include "plugins/nccl/nccl_abi.h"

#include <cuda_runtime_api.h>
#include <emulated.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RANKS = 3, COUNT = 3000, ROUNDS = 5 };

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s does not hold; NCCL: %s\n", __FILE__, __LINE__, #condition,                     \
                    ncclGetLastError(NULL));                                                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef struct {
    int rank;
    const ncclUniqueId *id;
    bool blocking;
} place;

static cudaStream_t make_stream(void)
{
    int least, greatest;
    cudaStream_t stream;
    CHECK(!cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(!cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
    return stream;
}

static void finish(ncclComm_t comm, ncclResult_t result)
{
    while (result == ncclInProgress) {
        usleep(20);
        CHECK(ncclCommGetAsyncError(comm, &result) == ncclSuccess);
    }
    CHECK(result == ncclSuccess);
}

/* A reduction on one stream, between copies on another one. */
static void reduce(const place *p, ncclComm_t comm, cudaStream_t copies, cudaStream_t stream, int32_t *device,
                   int32_t *host, int round)
{
    cudaEvent_t copied, reduced;
    CHECK(!cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    CHECK(!cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    for (int i = 0; i < RANKS * COUNT; i++) host[i] = (p->rank + 1) * (i + round);
    CHECK(!cudaMemcpyAsync(device, host, RANKS * COUNT * sizeof *host, cudaMemcpyHostToDevice, copies));
    CHECK(!cudaEventRecord(copied, copies) && !cudaStreamWaitEvent(stream, copied, 0));
    int32_t *own = device + p->rank * COUNT;
    finish(comm, ncclReduceScatter(device, own, COUNT, ncclInt32, ncclSum, comm, stream));
    finish(comm, ncclAllGather(own, device, COUNT, ncclInt32, comm, stream));
    CHECK(!cudaEventRecord(reduced, stream) && !cudaStreamWaitEvent(copies, reduced, 0));
    CHECK(!cudaMemcpyAsync(host, device, RANKS * COUNT * sizeof *host, cudaMemcpyDeviceToHost, copies));
    CHECK(!cudaStreamSynchronize(copies));
    for (int i = 0; i < RANKS * COUNT; i++) CHECK(host[i] == RANKS * (RANKS + 1) / 2 * (i + round));
    CHECK(!cudaEventDestroy(copied) && !cudaEventDestroy(reduced));
}

static void *run_rank(void *argument)
{
    const place *p = argument;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL;
    int32_t *device, *host;
    int current = -1;
    CHECK(!cudaSetDevice(p->rank) && !cudaGetDevice(&current) && current == p->rank);
    cudaStream_t copies = make_stream(), stream = make_stream();
    CHECK(!cudaMalloc((void **)&device, RANKS * COUNT * sizeof *device));
    CHECK(!cudaHostAlloc((void **)&host, RANKS * COUNT * sizeof *host, cudaHostAllocDefault));
    config.blocking = p->blocking;
    const ncclResult_t begun = ncclCommInitRankConfig(&comm, RANKS, *p->id, p->rank, &config);
    finish(comm, begun);
    for (int round = 0; round < ROUNDS; round++) reduce(p, comm, copies, stream, device, host, round);
    CHECK(ncclCommDestroy(comm) == ncclSuccess || !p->blocking);
    CHECK(!cudaStreamDestroy(stream) && !cudaStreamDestroy(copies));
    CHECK(!cudaFree(device) && !cudaFreeHost(host));
    return NULL;
}

int main(void)
{
    setenv("SLUICE_EMULATED_DEVICES", "3", 1);
    setenv("SLUICE_EMULATED_GUARD", "1", 1);
    alarm(300);
    for (int blocking = 0; blocking < 2; blocking++) {
        pthread_t threads[RANKS];
        place places[RANKS];
        ncclUniqueId id;
        CHECK(ncclGetUniqueId(&id) == ncclSuccess);
        for (int r = 0; r < RANKS; r++) {
            places[r] = (place){r, &id, blocking};
            CHECK(!pthread_create(&threads[r], NULL, run_rank, &places[r]));
        }
        for (int r = 0; r < RANKS; r++) pthread_join(threads[r], NULL);
    }
    printf("%d ranks agree\n", RANKS);
    return 0;
}
