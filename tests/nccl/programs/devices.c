/* One thread that drives several devices: communicators made at once and in a group, operations in groups. */
#include "tests/nccl/programs/shared/own_record.h"
#include "tests/nccl/programs/shared/ranks.h"

enum { DEVICES = 4, COUNT = 1500 };

typedef struct {
    slc_rank *rank; /* the only one */
    ncclComm_t communicators[DEVICES];
    cudaStream_t streams[DEVICES];
    int32_t *memory[DEVICES];
} devices;

static void reduce_and_check(devices *d, int step)
{
    int32_t host[COUNT];
    for (int k = 0; k < DEVICES; k++) {
        for (int i = 0; i < COUNT; i++) host[i] = (k + 1) * (i + step);
        CUDA(cudaSetDevice(k));
        CUDA(cudaMemcpy(d->memory[k], host, sizeof host, cudaMemcpyHostToDevice));
    }
    NCCL(ncclGroupStart());
    for (int k = 0; k < DEVICES; k++)
        NCCL(ncclAllReduce(d->memory[k], d->memory[k], COUNT, ncclInt32, ncclSum, d->communicators[k], d->streams[k]));
    for (int k = 0; k < DEVICES; k++) /* a second operation of every device, in the same group */
        NCCL(ncclBroadcast(d->memory[k], d->memory[k], COUNT / 2, ncclInt32, step % DEVICES, d->communicators[k],
                           d->streams[k]));
    NCCL(ncclGroupEnd());
    for (int k = 0; k < DEVICES; k++) {
        CUDA(cudaSetDevice(k));
        CUDA(cudaStreamSynchronize(d->streams[k]));
        CUDA(cudaMemcpy(host, d->memory[k], sizeof host, cudaMemcpyDeviceToHost));
        for (int i = 0; i < COUNT; i++)
            CHECK(host[i] == DEVICES * (DEVICES + 1) / 2 * (i + step), "device %d, step %d: element %d is %d", k, step,
                  i, host[i]);
        slc_rank_result(d->rank, host, sizeof host);
    }
}

static void check_devices(devices *d)
{
    for (int k = 0; k < DEVICES; k++) {
        int device, rank;
        NCCL(ncclCommCuDevice(d->communicators[k], &device));
        NCCL(ncclCommUserRank(d->communicators[k], &rank));
        CHECK(device == k && rank == k, "communicator %d is rank %d on device %d", k, rank, device);
    }
}

/* If times were measured, each operation of each device must have one of its own. */
static void check_times(void)
{
    slc_own_record record;
    if (!slc_own_record_open(&record) || !record.times) return;
    CHECK(!record.header->times_lost, "%llu times are lost", (unsigned long long)record.header->times_lost);
    for (uint64_t i = 0; i < record.header->entries; i++) {
        unsigned operation = (unsigned)(record.entries[i].stream_operation_dtype >> 48) & 0xff;
        if (operation > SLC_RECORD_RECEIVE) continue;
        CHECK(record.times[i].sequence == record.entries[i].sequence, "entry %llu has no time", (unsigned long long)i);
    }
    for (uint32_t i = 0; i < record.header->communicators; i++)
        CHECK(record.rows[i].done == record.rows[i].calls, "communicator %u: %llu of %llu operations are done", i,
              (unsigned long long)record.rows[i].done, (unsigned long long)record.rows[i].calls);
}

/* A communicator of one rank on device 1 is called outside of groups, whatever the current device is. */
static void send_one_alone(devices *d)
{
    int32_t *at = d->memory[1];
    ncclComm_t alone;
    CUDA(cudaSetDevice(1));
    NCCL(ncclCommInitRank(&alone, 1, d->rank->ids[1], 0));
    for (int k = 0; k < DEVICES; k++) {
        CUDA(cudaSetDevice(k));
        NCCL(ncclAllReduce(at, at, COUNT, ncclInt32, ncclSum, alone, d->streams[1]));
        CUDA(cudaStreamSynchronize(d->streams[1])); /* so that the two streams end in the order of the calls */
        NCCL(ncclAllReduce(at, at, COUNT, ncclInt32, ncclSum, alone, NULL));
        CUDA(cudaSetDevice(1));
        CUDA(cudaDeviceSynchronize());
    }
    NCCL(ncclCommDestroy(alone));
}

static void drive_all(slc_rank *rank)
{
    devices d = {.rank = rank};
    for (int k = 0; k < DEVICES; k++) {
        CUDA(cudaSetDevice(k));
        CUDA(cudaStreamCreateWithFlags(&d.streams[k], cudaStreamNonBlocking));
        CUDA(cudaMalloc((void **)&d.memory[k], COUNT * sizeof *d.memory[k]));
    }
    NCCL(ncclCommInitAll(d.communicators, DEVICES, NULL));
    check_devices(&d);
    for (int step = 0; step < 5; step++) reduce_and_check(&d, step);
    for (int k = 0; k < DEVICES; k++) NCCL(ncclCommDestroy(d.communicators[k]));

    NCCL(ncclGroupStart());
    for (int k = 0; k < DEVICES; k++) {
        CUDA(cudaSetDevice(k));
        NCCL(ncclCommInitRank(&d.communicators[k], DEVICES, rank->ids[0], k));
    }
    NCCL(ncclGroupEnd());
    check_devices(&d);
    for (int step = 5; step < 10; step++) reduce_and_check(&d, step);
    send_one_alone(&d);
    for (int k = 0; k < DEVICES; k++) {
        NCCL(ncclCommDestroy(d.communicators[k]));
        CUDA(cudaSetDevice(k));
        CUDA(cudaFree(d.memory[k]));
        CUDA(cudaStreamDestroy(d.streams[k]));
    }
    check_times();
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 1, 120, drive_all);
}
