/* Several communicators at a time, which are used in turns on two streams, destroyed, aborted and made again. However
 * many there are, the shim may take 64 MiB of device memory for all of them; the host's NCCL takes none. */
#include "tests/nccl/programs/shared/ranks.h"
#include "tests/nccl/programs/shared/values.h"

enum { COMMUNICATORS = 4, ROUNDS = 24, PIECES = 8, COUNT = 1000, TOTAL = PIECES * COUNT, MOST_TAKEN = 65 << 20 };

typedef struct {
    slc_rank *rank;
    ncclComm_t parent;
    ncclComm_t communicators[COMMUNICATORS];
    cudaStream_t streams[2];
    float *memory;
    int uses;
} many;

static void make(many *m, int index)
{
    NCCL(ncclCommSplit(m->parent, 0, m->rank->rank, &m->communicators[index], NULL));
    m->rank->calls++;
}

static void use(many *m, int index)
{
    static _Thread_local float host[TOTAL], expected[TOTAL];
    cudaStream_t stream = m->streams[m->uses % 2];
    for (int i = 0; i < TOTAL; i++) host[i] = (float)((m->rank->rank + 1) * (i % 100) + m->uses);
    for (int i = 0; i < TOTAL; i++)
        expected[i] = (float)(m->rank->size * (m->rank->size + 1) / 2 * (i % 100) + m->rank->size * m->uses);
    m->uses++;
    CUDA(cudaMemcpy(m->memory, host, sizeof host, cudaMemcpyHostToDevice));
    NCCL(ncclGroupStart());
    for (float *at = m->memory; at < m->memory + TOTAL; at += COUNT) {
        NCCL(ncclAllReduce(at, at, COUNT, ncclFloat32, ncclSum, m->communicators[index], stream));
        m->rank->calls++;
    }
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(host, m->memory, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < TOTAL; i++)
        CHECK(host[i] == expected[i], "rank %d, use %d: element %d is %g, not %g", m->rank->rank, m->uses, i,
              (double)host[i], (double)expected[i]);
    slc_rank_result(m->rank, host, sizeof host);
}

/* More communicators in one group than a process has GPUs. */
static void make_at_once(many *m)
{
    enum { AT_ONCE = 70 };
    ncclComm_t made[AT_ONCE];
    NCCL(ncclGroupStart());
    for (int i = 0; i < AT_ONCE; i++) NCCL(ncclCommSplit(m->parent, 0, m->rank->rank, &made[i], NULL));
    NCCL(ncclGroupEnd());
    m->rank->calls += AT_ONCE;
    for (int i = 0; i < AT_ONCE; i++) NCCL(ncclCommDestroy(made[i]));
}

static void run(slc_rank *rank)
{
    many m = {.rank = rank};
    size_t before, after, all;
    for (int s = 0; s < 2; s++) CUDA(cudaStreamCreateWithFlags(&m.streams[s], cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&m.memory, TOTAL * sizeof *m.memory));
    CUDA(cudaMemGetInfo(&before, &all));
    NCCL(ncclCommInitRank(&m.parent, rank->size, rank->ids[0], rank->rank));
    for (int i = 0; i < COMMUNICATORS; i++) make(&m, i);
    CUDA(cudaMemGetInfo(&after, &all));
    CHECK(after > before || before - after < MOST_TAKEN, "%d communicators take %zu bytes", COMMUNICATORS + 1,
          before - after);
    make_at_once(&m);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COMMUNICATORS; i++) use(&m, i);
        const int ends = round % COMMUNICATORS;
        NCCL(round % 2 ? ncclCommAbort(m.communicators[ends]) : ncclCommDestroy(m.communicators[ends]));
        make(&m, ends);
    }
    for (int i = 0; i < COMMUNICATORS; i++) use(&m, i);
    for (int i = 0; i < COMMUNICATORS; i++) NCCL(ncclCommDestroy(m.communicators[i]));
    NCCL(ncclCommDestroy(m.parent));
    CUDA(cudaFree(m.memory));
    for (int s = 0; s < 2; s++) CUDA(cudaStreamDestroy(m.streams[s]));
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 2, 120, run);
}
