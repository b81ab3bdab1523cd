/* One thread that makes communicators of several devices and asks NCCL whether they are done, as programs do that never
 * block: some are used and destroyed while others of their group are still being made, some are made of others. If the
 * shim recorded the program, it looks into the record, which must tell what became of each of them. */
#include "tests/nccl/programs/shared/own_record.h"
#include "tests/nccl/programs/shared/ranks.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 4, COUNT = 64 };

typedef struct {
    slc_rank *rank; /* the only one */
    cudaStream_t streams[DEVICES];
    int32_t *memory[DEVICES];
    ncclConfig_t config;
} place;

static void ok(ncclResult_t result, const char *what)
{
    CHECK(result == ncclSuccess || result == ncclInProgress, "%s: %s", what, ncclGetErrorString(result));
}

/* Asks all of them in turn until none is in progress. */
static void settle(const ncclComm_t *comms, int count)
{
    for (bool busy = true; busy; sched_yield()) {
        busy = false;
        for (int k = 0; k < count; k++) {
            ncclResult_t state;
            NCCL(ncclCommGetAsyncError(comms[k], &state));
            ok(state, "ncclCommGetAsyncError");
            busy |= state == ncclInProgress;
        }
    }
}

/* A sum over `count` communicators, that of device `first` first. */
static void sum(place *p, const ncclComm_t *comms, int first, int count)
{
    int32_t host[COUNT];
    for (int k = 0; k < count; k++) {
        for (int i = 0; i < COUNT; i++) host[i] = (k + 1) * i;
        CUDA(cudaSetDevice(first + k));
        CUDA(cudaMemcpy(p->memory[first + k], host, sizeof host, cudaMemcpyHostToDevice));
    }
    NCCL(ncclGroupStart());
    for (int k = 0; k < count; k++) {
        int32_t *at = p->memory[first + k];
        ok(ncclAllReduce(at, at, COUNT, ncclInt32, ncclSum, comms[k], p->streams[first + k]), "ncclAllReduce");
        p->rank->calls++;
    }
    ok(ncclGroupEnd(), "ncclGroupEnd");
    settle(comms, count);
    for (int k = 0; k < count; k++) {
        CUDA(cudaSetDevice(first + k));
        CUDA(cudaStreamSynchronize(p->streams[first + k]));
        CUDA(cudaMemcpy(host, p->memory[first + k], sizeof host, cudaMemcpyDeviceToHost));
        CHECK(host[COUNT - 1] == count * (count + 1) / 2 * (COUNT - 1), "device %d: %d", first + k, host[COUNT - 1]);
        slc_rank_result(p->rank, host, sizeof host);
    }
}

static void destroy(const ncclComm_t *comms, int count)
{
    for (int k = 0; k < count; k++) NCCL(ncclCommDestroy(comms[k]));
}

static void *settle_one(void *comm)
{
    settle(comm, 1);
    return NULL;
}

/* Makes two communicators in one group, and uses and destroys the second before it asks about the first. The threads
 * that ask have called nothing of CUDA's; two ask at a time. */
static void end_one_first(place *p)
{
    ncclComm_t comms[2];
    NCCL(ncclGroupStart());
    for (int k = 0; k < 2; k++) {
        CUDA(cudaSetDevice(k));
        ok(ncclCommInitRankConfig(&comms[k], 1, p->rank->ids[k], 0, &p->config), "ncclCommInitRankConfig");
    }
    ok(ncclGroupEnd(), "ncclGroupEnd");
    for (int k = 1; k >= 0; k--) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) CHECK(!pthread_create(&threads[i], NULL, settle_one, &comms[k]), "no thread");
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        sum(p, &comms[k], k, 1);
        NCCL(ncclCommDestroy(comms[k]));
    }
}

/* Halves of a world: their handles come when their parents are done with the split. */
static void split_and_use(place *p, const ncclComm_t *world)
{
    ncclComm_t halves[DEVICES];
    memset(halves, 0xff, sizeof halves);
    NCCL(ncclGroupStart());
    for (int k = 0; k < DEVICES; k++) {
        CUDA(cudaSetDevice(k));
        ok(ncclCommSplit(world[k], k / 2, k, &halves[k], &p->config), "ncclCommSplit");
        p->rank->calls++;
    }
    ok(ncclGroupEnd(), "ncclGroupEnd");
    settle(world, DEVICES);
    for (int k = 0; k < DEVICES; k++) CHECK(halves[k], "device %d has no communicator", k);
    settle(halves, DEVICES);
    for (int half = 0; half < 2; half++) sum(p, halves + 2 * half, 2 * half, 2);
    destroy(halves, DEVICES);
}

/* Devices 2 and 3 do not come to an operation that device 0 has called already. Devices 0 and 1 shrink the communicator
 * to go on without them; each names the two in another order. */
static void shrink_and_use(place *p, const ncclComm_t *world)
{
    int without[2][2] = {{2, 3}, {3, 2}};
    ncclComm_t rest[2];
    CUDA(cudaSetDevice(0));
    ok(ncclAllReduce(p->memory[0], p->memory[0], COUNT, ncclInt32, ncclSum, world[0], p->streams[0]), "ncclAllReduce");
    p->rank->calls++;
    settle(world, 1);
    NCCL(ncclGroupStart());
    for (int k = 0; k < 2; k++) {
        CUDA(cudaSetDevice(k));
        ok(ncclCommShrink(world[k], without[k], 2, &rest[k], &p->config, NCCL_SHRINK_ABORT), "ncclCommShrink");
    }
    ok(ncclGroupEnd(), "ncclGroupEnd");
    settle(world, 2);
    settle(rest, 2);
    sum(p, rest, 0, 2);
    destroy(rest, 2);
}

/* The record must know all communicators and their ranks. */
static void check_record(void)
{
    slc_own_record record;
    if (!slc_own_record_open(&record)) return;
    /* 2 of end_one_first, the world, its halves, those without the last two */
    const uint32_t expected = 2 + DEVICES + DEVICES + 2;
    const slc_record_communicator *rest = record.rows + expected - 2;
    CHECK(!getenv("SLUICE_SHIM_DONE") || record.header->done_is_written, "streams do not say what they have finished");
    CHECK(record.header->communicators == expected, "%u communicators", record.header->communicators);
    for (uint32_t i = 0; i < expected; i++) {
        const slc_record_communicator *row = &record.rows[i];
        bool aborted = i == 2 || i == 3;
        CHECK(row->state == (aborted ? SLC_RECORD_ROW_ABORTED : SLC_RECORD_ROW_DESTROYED), "communicator %u: state %u",
              i, row->state);
        CHECK(row->rank >= 0 && row->size > 0 && row->device >= 0, "communicator %u: rank %d of %d, device %d", i,
              row->rank, row->size, row->device);
    }
    CHECK(rest[0].key == rest[1].key && rest[0].parent_key == record.rows[2].key, "shrinking gave two keys");
}

static void drive_all(slc_rank *rank)
{
    place p = {.rank = rank, .config = NCCL_CONFIG_INITIALIZER};
    ncclComm_t world[DEVICES];
    p.config.blocking = 0;
    for (int k = 0; k < DEVICES; k++) {
        CUDA(cudaSetDevice(k));
        CUDA(cudaStreamCreateWithFlags(&p.streams[k], cudaStreamNonBlocking));
        CUDA(cudaMalloc((void **)&p.memory[k], COUNT * sizeof *p.memory[k]));
    }
    end_one_first(&p);
    NCCL(ncclGroupStart());
    for (int k = 0; k < DEVICES; k++) {
        CUDA(cudaSetDevice(k));
        ok(ncclCommInitRankConfig(&world[k], DEVICES, rank->ids[2], k, &p.config), "ncclCommInitRankConfig");
    }
    ok(ncclGroupEnd(), "ncclGroupEnd");
    settle(world, DEVICES);
    sum(&p, world, 0, DEVICES);
    split_and_use(&p, world);
    shrink_and_use(&p, world);
    for (int k = 0; k < 2; k++) NCCL(ncclCommAbort(world[k]));
    destroy(world + 2, DEVICES - 2);
    for (int k = 0; k < DEVICES; k++) {
        CUDA(cudaSetDevice(k));
        CUDA(cudaFree(p.memory[k]));
        CUDA(cudaStreamDestroy(p.streams[k]));
    }
    check_record();
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 1, 120, drive_all);
}
