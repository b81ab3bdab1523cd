/* Two threads of a rank take turns with one communicator, each on its own default stream: streams of one handle that
 * are two. Nobody waits for the first one's group before the second one calls its own, and the last rank comes late. */
#include "tests/nccl/programs/shared/ranks.h"

#include <pthread.h>
#include <unistd.h>

enum { TURNS = 20, PIECES = 4, COUNT = 700, TOTAL = PIECES * COUNT };

typedef struct {
    slc_rank *rank;
    ncclComm_t communicator;
    float *memory[TURNS];
    int turn;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} shared;

static void call_group(shared *s, int turn)
{
    if (s->rank->rank == s->rank->size - 1) usleep(2000);
    NCCL(ncclGroupStart());
    for (float *at = s->memory[turn]; at < s->memory[turn] + TOTAL; at += COUNT)
        NCCL(ncclAllReduce(at, at, COUNT, ncclFloat32, ncclSum, s->communicator, cudaStreamPerThread));
    NCCL(ncclGroupEnd());
    s->rank->calls += PIECES;
}

/* A thread's every second turn; it ends its stream's work once all turns are over. */
static void take_turns(shared *s, int parity)
{
    pthread_mutex_lock(&s->lock);
    for (int turn = parity; turn < TURNS; turn += 2) {
        while (s->turn != turn) pthread_cond_wait(&s->changed, &s->lock);
        call_group(s, turn);
        s->turn++;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    CUDA(cudaStreamSynchronize(cudaStreamPerThread));
}

static void *second_thread(void *argument)
{
    shared *s = argument;
    CUDA(cudaSetDevice(s->rank->rank));
    take_turns(s, 1);
    return NULL;
}

static void run(slc_rank *rank)
{
    shared s = {.rank = rank, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    static _Thread_local float host[TOTAL];
    pthread_t thread;
    NCCL(ncclCommInitRank(&s.communicator, rank->size, rank->ids[0], rank->rank));
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < TOTAL; i++) host[i] = (float)((rank->rank + 1) * (i % 90) + turn);
        CUDA(cudaMalloc((void **)&s.memory[turn], sizeof host));
        CUDA(cudaMemcpy(s.memory[turn], host, sizeof host, cudaMemcpyHostToDevice));
    }
    CHECK(!pthread_create(&thread, NULL, second_thread, &s), "no thread");
    take_turns(&s, 0);
    pthread_join(thread, NULL);
    for (int turn = 0; turn < TURNS; turn++) {
        CUDA(cudaMemcpy(host, s.memory[turn], sizeof host, cudaMemcpyDeviceToHost));
        for (int i = 0; i < TOTAL; i++) {
            const int sum = rank->size * (rank->size + 1) / 2 * (i % 90) + rank->size * turn;
            CHECK(host[i] == (float)sum, "rank %d, turn %d: element %d is %g, not %d", rank->rank, turn, i,
                  (double)host[i], sum);
        }
        slc_rank_result(rank, host, sizeof host);
        CUDA(cudaFree(s.memory[turn]));
    }
    NCCL(ncclCommDestroy(s.communicator));
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 2, 120, run);
}
