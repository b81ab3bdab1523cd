/* Communicators that are made, used and destroyed while other threads of the process capture in the global mode, which
 * forbids all threads what may wait for a GPU. Nothing that is done for a communicator may end such a capture. Ranks
 * are threads. */
#include "tests/nccl/programs/shared/ranks.h"

#include <pthread.h>

enum { RANKS = 2, COUNT = 500, SMALL = 4, BYTE = 7 };

static pthread_barrier_t all;

typedef struct {
    cudaStream_t stream;
    unsigned char *memory;
    cudaGraph_t graph;
    pthread_barrier_t begun, over;
    int device;
} capture;

static void *capture_meanwhile(void *argument)
{
    capture *c = argument;
    CUDA(cudaSetDevice(c->device));
    CUDA(cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeGlobal));
    CUDA(cudaMemsetAsync(c->memory, BYTE, COUNT, c->stream));
    pthread_barrier_wait(&c->begun);
    pthread_barrier_wait(&c->over);
    CUDA(cudaStreamEndCapture(c->stream, &c->graph));
    return NULL;
}

/* Uses a communicator. Calls that the capture forbids the program itself come before the capture or after it. */
static void use_communicator(slc_rank *rank, cudaStream_t stream, int32_t *memory[SMALL])
{
    ncclComm_t communicator;
    NCCL(ncclCommInitRank(&communicator, rank->size, rank->ids[0], rank->rank));
    NCCL(ncclGroupStart());
    for (int k = 0; k < SMALL; k++)
        NCCL(ncclAllReduce(memory[k], memory[k], COUNT, ncclInt32, ncclSum, communicator, stream));
    NCCL(ncclGroupEnd());
    NCCL(ncclCommDestroy(communicator));
}

static void check_graph(slc_rank *rank, const capture *c)
{
    unsigned char host[COUNT];
    cudaGraphExec_t executable;
    CUDA(cudaGraphInstantiate(&executable, c->graph, 0));
    CUDA(cudaGraphLaunch(executable, c->stream));
    CUDA(cudaStreamSynchronize(c->stream));
    CUDA(cudaMemcpy(host, c->memory, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++) CHECK(host[i] == BYTE, "rank %d: byte %d is %d", rank->rank, i, host[i]);
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(c->graph));
}

static void use_while_others_capture(slc_rank *rank)
{
    capture c = {.device = rank->rank};
    pthread_t thread;
    cudaStream_t stream;
    int32_t host[COUNT], *memory[SMALL];
    CUDA(cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&c.memory, COUNT));
    for (int k = 0; k < SMALL; k++) {
        for (int i = 0; i < COUNT; i++) host[i] = (rank->rank + 1) * (i + k);
        CUDA(cudaMalloc((void **)&memory[k], sizeof host));
        CUDA(cudaMemcpy(memory[k], host, sizeof host, cudaMemcpyHostToDevice));
    }
    CUDA(cudaDeviceSynchronize());
    pthread_barrier_init(&c.begun, NULL, 2);
    pthread_barrier_init(&c.over, NULL, 2);
    pthread_barrier_wait(&all);
    CHECK(!pthread_create(&thread, NULL, capture_meanwhile, &c), "no thread");
    pthread_barrier_wait(&c.begun);
    use_communicator(rank, stream, memory);
    pthread_barrier_wait(&c.over);
    pthread_join(thread, NULL);
    pthread_barrier_wait(&all);

    CUDA(cudaStreamSynchronize(stream));
    for (int k = 0; k < SMALL; k++) {
        CUDA(cudaMemcpy(host, memory[k], sizeof host, cudaMemcpyDeviceToHost));
        for (int i = 0; i < COUNT; i++)
            CHECK(host[i] == RANKS * (RANKS + 1) / 2 * (i + k), "rank %d: element %d is %d", rank->rank, i, host[i]);
        slc_rank_result(rank, host, sizeof host);
        CUDA(cudaFree(memory[k]));
    }
    check_graph(rank, &c);
    CUDA(cudaFree(c.memory));
    CUDA(cudaStreamDestroy(c.stream));
    CUDA(cudaStreamDestroy(stream));
    pthread_barrier_destroy(&c.begun);
    pthread_barrier_destroy(&c.over);
}

int main(int argc, char **argv)
{
    pthread_barrier_init(&all, NULL, RANKS);
    return slc_ranks_run(&argc, argv, RANKS, 120, use_while_others_capture);
}
