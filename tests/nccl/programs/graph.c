/* Operations captured into a graph, alone and in a group, and replayed on changing data. */
#include "tests/nccl/programs/shared/ranks.h"

enum { COUNT = 2000, REPLAYS = 10 };

typedef struct {
    slc_rank *rank;
    ncclComm_t communicator;
    cudaStream_t stream;
    int64_t *sum, *largest, *gathered;
} place;

static cudaGraphExec_t capture(place *p)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CUDA(cudaStreamBeginCapture(p->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(p->sum, p->sum, COUNT, ncclInt64, ncclSum, p->communicator, p->stream));
    NCCL(ncclAllReduce(p->largest, p->largest, COUNT, ncclInt64, ncclMax, p->communicator, p->stream));
    NCCL(ncclGroupEnd());
    NCCL(ncclAllGather(p->sum, p->gathered, COUNT, ncclInt64, p->communicator, p->stream));
    CUDA(cudaStreamEndCapture(p->stream, &graph));
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return executable;
}

static void replay(place *p, cudaGraphExec_t graph, int round)
{
    int64_t host[COUNT], ranks = p->rank->size, mine = p->rank->rank + 1;
    for (int i = 0; i < COUNT; i++) host[i] = mine * (i + round);
    CUDA(cudaMemcpy(p->sum, host, sizeof host, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(p->largest, host, sizeof host, cudaMemcpyHostToDevice));
    CUDA(cudaStreamSynchronize(NULL)); /* a copy from memory that is not pinned may return before it has arrived */
    CUDA(cudaGraphLaunch(graph, p->stream));
    CUDA(cudaStreamSynchronize(p->stream));
    for (int r = 0; r < ranks; r++) {
        CUDA(cudaMemcpy(host, p->gathered + (size_t)r * COUNT, sizeof host, cudaMemcpyDeviceToHost));
        for (int i = 0; i < COUNT; i++)
            CHECK(host[i] == ranks * (ranks + 1) / 2 * (i + round), "rank %d, replay %d: sum %d of rank %d is %lld",
                  p->rank->rank, round, i, r, (long long)host[i]);
        slc_rank_result(p->rank, host, sizeof host);
    }
    CUDA(cudaMemcpy(host, p->largest, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        CHECK(host[i] == ranks * (i + round), "rank %d, replay %d: the largest value %d is %lld", p->rank->rank, round,
              i, (long long)host[i]);
    slc_rank_result(p->rank, host, sizeof host);
}

static void capture_and_replay(slc_rank *rank)
{
    place p = {.rank = rank};
    NCCL(ncclCommInitRank(&p.communicator, rank->size, rank->ids[0], rank->rank));
    CUDA(cudaStreamCreateWithFlags(&p.stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&p.sum, COUNT * sizeof *p.sum));
    CUDA(cudaMalloc((void **)&p.largest, COUNT * sizeof *p.largest));
    CUDA(cudaMalloc((void **)&p.gathered, (size_t)rank->size * COUNT * sizeof *p.gathered));
    cudaGraphExec_t graph = capture(&p);
    for (int round = 0; round < REPLAYS; round++) replay(&p, graph, round);
    CUDA(cudaGraphExecDestroy(graph));
    CUDA(cudaFree(p.sum));
    CUDA(cudaFree(p.largest));
    CUDA(cudaFree(p.gathered));
    CUDA(cudaStreamDestroy(p.stream));
    NCCL(ncclCommDestroy(p.communicator));
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 2, 120, capture_and_replay);
}
