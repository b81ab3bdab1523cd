/* A program that goes right for some rounds and then does one thing wrong, named on the command line, as programs that
 * train do: `nccl_faults NAME [-n 4] [--processes]`. The rank at fault prints "planted NANOSECONDS" (CLOCK_MONOTONIC)
 * just before. A mismatch hangs; `none` ends well. */
#include "tests/nccl/programs/shared/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1000, ROUNDS = 20 };

typedef struct {
    slc_rank *rank;
    ncclComm_t world, half; /* half: the even or the odd ranks */
    cudaStream_t stream;
    float *memory, *other;
} trainer;

typedef struct {
    const char *name;
    void (*commit)(trainer *);
} fault;

static const fault *planted;

static bool at_fault(const trainer *t)
{
    return t->rank->rank == t->rank->size - 1;
}

static void synchronize(trainer *t)
{
    CUDA(cudaStreamSynchronize(t->stream));
}

static void say_planted(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("planted %lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    fflush(stdout);
}

static void all_reduce(trainer *t, ncclComm_t communicator, size_t count)
{
    NCCL(ncclAllReduce(t->memory, t->memory, count, ncclFloat32, ncclSum, communicator, t->stream));
}

static void send_to(trainer *t, int rank, size_t count)
{
    NCCL(ncclSend(t->memory, count, ncclFloat32, rank, t->world, t->stream));
}

static void receive_from(trainer *t, int rank, size_t count)
{
    NCCL(ncclRecv(t->other, count, ncclFloat32, rank, t->world, t->stream));
}

/* A step of everything, the counts changing from round to round. */
static void go_right(trainer *t, int round)
{
    int me = t->rank->rank, size = t->rank->size;
    size_t count = COUNT - (size_t)round;
    all_reduce(t, t->world, count);
    NCCL(ncclAllGather(t->memory, t->other, count / (size_t)size, ncclFloat32, t->world, t->stream));
    NCCL(ncclBroadcast(t->memory, t->memory, count, ncclFloat32, round % size, t->world, t->stream));
    all_reduce(t, t->half, count / 2);
    NCCL(ncclGroupStart());
    send_to(t, (me + 1) % size, 100);
    receive_from(t, (me + size - 1) % size, 100);
    NCCL(ncclGroupEnd());
    synchronize(t);
}

static void wrong_count(trainer *t)
{
    all_reduce(t, t->world, at_fault(t) ? COUNT / 2 : COUNT);
}

static void wrong_dtype(trainer *t)
{
    NCCL(ncclAllReduce(t->memory, t->memory, COUNT, at_fault(t) ? ncclInt32 : ncclFloat32, ncclSum, t->world,
                       t->stream));
}

static void wrong_operation(trainer *t)
{
    if (at_fault(t))
        NCCL(ncclReduce(t->memory, t->memory, COUNT, ncclFloat32, ncclSum, 0, t->world, t->stream));
    else
        all_reduce(t, t->world, COUNT);
}

static void wrong_redop(trainer *t)
{
    NCCL(ncclAllReduce(t->memory, t->memory, COUNT, ncclFloat32, at_fault(t) ? ncclMax : ncclSum, t->world, t->stream));
}

static void wrong_root(trainer *t)
{
    NCCL(ncclBroadcast(t->memory, t->memory, COUNT, ncclFloat32, at_fault(t), t->world, t->stream));
}

static void wrong_order(trainer *t)
{
    all_reduce(t, t->world, at_fault(t) ? COUNT / 4 : COUNT);
    all_reduce(t, t->world, at_fault(t) ? COUNT : COUNT / 4);
}

/* The rank at fault calls one operation more than the others, which end meanwhile. */
static void call_too_many(trainer *t)
{
    if (at_fault(t)) all_reduce(t, t->world, COUNT);
}

/* The rank waits for something else, for ever. */
static void call_missing(trainer *t)
{
    if (at_fault(t)) pause();
    all_reduce(t, t->world, COUNT);
}

/* The rank goes on with the next call. */
static void call_left_out(trainer *t)
{
    if (!at_fault(t)) all_reduce(t, t->world, COUNT);
    for (int round = 0; round < 3; round++) all_reduce(t, t->world, COUNT - 1 - (size_t)round);
}

static void send_without_receive(trainer *t)
{
    if (at_fault(t)) send_to(t, 0, COUNT);
    all_reduce(t, t->world, COUNT);
}

static void unequal_send_and_receive(trainer *t)
{
    if (at_fault(t)) send_to(t, 0, COUNT);
    if (t->rank->rank == 0) receive_from(t, t->rank->size - 1, COUNT / 2);
}

static void crossed_communicators(trainer *t)
{
    ncclComm_t first = at_fault(t) ? t->half : t->world;
    all_reduce(t, first, COUNT);
    all_reduce(t, first == t->half ? t->world : t->half, COUNT);
}

static void split_missed(trainer *t)
{
    ncclComm_t communicator;
    if (!at_fault(t)) NCCL(ncclCommSplit(t->world, 0, t->rank->rank, &communicator, NULL));
}

static void killed(trainer *t)
{
    if (at_fault(t)) raise(SIGKILL);
    all_reduce(t, t->world, COUNT);
}

static void stopped(trainer *t)
{
    if (at_fault(t)) raise(SIGSTOP);
    all_reduce(t, t->world, COUNT);
}

static void wait_for_ever(void *nothing)
{
    (void)nothing;
    for (;;) pause();
}

/* The rank calls what the others call, but its stream waits for something else. */
static void stream_blocked(trainer *t)
{
    if (at_fault(t)) CUDA(cudaLaunchHostFunc(t->stream, wait_for_ever, NULL));
    all_reduce(t, t->world, COUNT);
}

static const fault faults[] = {
    {"none", NULL},
    {"count", wrong_count},
    {"dtype", wrong_dtype},
    {"operation", wrong_operation},
    {"redop", wrong_redop},
    {"root", wrong_root},
    {"order", wrong_order},
    {"too_many", call_too_many},
    {"missing", call_missing},
    {"left_out", call_left_out},
    {"send", send_without_receive},
    {"unequal", unequal_send_and_receive},
    {"communicators", crossed_communicators},
    {"split", split_missed},
    {"killed", killed},
    {"stopped", stopped},
    {"blocked", stream_blocked},
};

static void train(slc_rank *rank)
{
    trainer t = {.rank = rank};
    size_t bytes = COUNT * sizeof *t.memory;
    NCCL(ncclCommInitRank(&t.world, rank->size, rank->ids[0], rank->rank));
    NCCL(ncclCommSplit(t.world, rank->rank % 2, rank->rank, &t.half, NULL));
    CUDA(cudaStreamCreateWithFlags(&t.stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&t.memory, bytes));
    CUDA(cudaMalloc((void **)&t.other, bytes));
    CUDA(cudaMemset(t.memory, 0, bytes));
    for (int round = 0; round < ROUNDS; round++) go_right(&t, round);
    if (planted->commit) {
        if (at_fault(&t)) say_planted();
        planted->commit(&t);
        synchronize(&t);
    }
    bool ends = planted->commit == call_too_many;
    for (int round = 0; round < ROUNDS && !ends; round++) go_right(&t, round);
    CUDA(cudaFree(t.memory));
    CUDA(cudaFree(t.other));
    CUDA(cudaStreamDestroy(t.stream));
    NCCL(ncclCommDestroy(t.half));
    NCCL(ncclCommDestroy(t.world));
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof faults / sizeof *faults; i++)
        if (!strcmp(argv[1], faults[i].name)) planted = &faults[i];
    if (!planted) {
        fputs("nccl_faults NAME [-n RANKS] [--processes]; NAME:", stderr);
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) fprintf(stderr, " %s", faults[i].name);
        fputc('\n', stderr);
        return 2;
    }
    return slc_ranks_run(&argc, argv, 4, 120, train);
}
