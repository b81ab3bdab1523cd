/* A watchdog's work: rank 0 waits for an all-reduce that the other ranks never call, until another of its threads
 * aborts the communicator. The time that the abort took, and the time until the wait was over, are printed on standard
 * error. */
#include "tests/nccl/programs/shared/ranks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { COUNT = 100000, LIMIT_MS = 30000 };

typedef struct {
    ncclComm_t communicator;
    double abort_ms;
    _Atomic double began_ms;
} watchdog;

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void *watch_and_abort(void *argument)
{
    watchdog *dog = argument;
    nanosleep(&(struct timespec){.tv_nsec = 200 * 1000 * 1000}, NULL);
    ncclResult_t said;
    NCCL(ncclCommGetAsyncError(dog->communicator, &said));
    CHECK(said == ncclSuccess, "a communicator that waits has the error %s", ncclGetErrorString(said));
    dog->began_ms = now_ms();
    NCCL(ncclCommAbort(dog->communicator));
    dog->abort_ms = now_ms() - dog->began_ms;
    return NULL;
}

static void abort_while_blocked(ncclComm_t communicator)
{
    watchdog dog = {.communicator = communicator};
    pthread_t thread;
    cudaStream_t stream;
    float *memory;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&memory, COUNT * sizeof *memory));
    NCCL(ncclAllReduce(memory, memory, COUNT, ncclFloat32, ncclSum, communicator, stream));
    CHECK(!pthread_create(&thread, NULL, watch_and_abort, &dog), "no thread");
    cudaStreamSynchronize(stream); /* whatever it says: the operation did not happen */
    double released_ms = now_ms() - dog.began_ms;
    pthread_join(thread, NULL);
    fprintf(stderr, "abort returned after %.3f ms, the blocked thread went on after %.3f ms\n", dog.abort_ms,
            released_ms);
    CHECK(dog.began_ms > 0 && released_ms >= 0, "the thread went on before the abort");
    CHECK(dog.abort_ms < LIMIT_MS && released_ms < LIMIT_MS, "the abort took too long");
    CUDA(cudaFree(memory));
    CUDA(cudaStreamDestroy(stream));
}

static void wait_in_vain(slc_rank *rank)
{
    ncclComm_t communicator;
    NCCL(ncclCommInitRank(&communicator, rank->size, rank->ids[0], rank->rank));
    if (rank->rank == 0)
        abort_while_blocked(communicator);
    else
        NCCL(ncclCommAbort(communicator));

    /* The process goes on with a new communicator. */
    int32_t *memory, host = rank->rank + 1;
    NCCL(ncclCommInitRank(&communicator, rank->size, rank->ids[1], rank->rank));
    CUDA(cudaMalloc((void **)&memory, sizeof *memory));
    CUDA(cudaMemcpy(memory, &host, sizeof host, cudaMemcpyHostToDevice));
    NCCL(ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, communicator, NULL));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(&host, memory, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(host == rank->size * (rank->size + 1) / 2, "rank %d: the sum is %d", rank->rank, host);
    slc_rank_result(rank, &host, sizeof host);
    CUDA(cudaFree(memory));
    NCCL(ncclCommDestroy(communicator));
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 2, 120, wait_in_vain);
}
