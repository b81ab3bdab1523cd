/* Communicators as they are made, split, misused, aborted and ended. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/nccl/bed/hostnccl/support/ranks.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1000 };

/* Sums its rank + 1 over the communicator, and checks the sum. */
static void check_sum(ncclComm_t comm, cudaStream_t stream)
{
    float values[COUNT];
    int rank, size;
    CHECK(ncclCommUserRank(comm, &rank) == ncclSuccess && ncclCommCount(comm, &size) == ncclSuccess);
    for (int i = 0; i < COUNT; i++) values[i] = (float)(rank + 1);
    float *memory = device_copy(values, sizeof values);
    ncclResult_t result = ncclAllReduce(memory, memory, COUNT, ncclFloat32, ncclSum, comm, stream);
    CHECK(result == ncclSuccess || result == ncclInProgress);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    device_read(values, memory, sizeof values);
    for (int i = 0; i < COUNT; i++) CHECK(values[i] == (float)(size * (size + 1) / 2));
    cudaFree(memory);
}

/* ---- One thread, several devices ---- */

static void one_thread_has_all_devices(void **state)
{
    (void)state;
    enum { DEVICES = 4 };
    static const int devices[DEVICES] = {3, 1, 0, 2};
    ncclComm_t comms[DEVICES];
    cudaStream_t streams[DEVICES];
    float *memory[DEVICES], value;
    CHECK(ncclCommInitAll(comms, DEVICES, devices) == ncclSuccess);
    for (int d = 0; d < DEVICES; d++) {
        int device;
        CHECK(ncclCommCuDevice(comms[d], &device) == ncclSuccess && device == devices[d]);
        CHECK(cudaSetDevice(device) == cudaSuccess && cudaStreamCreate(&streams[d]) == cudaSuccess);
        value = (float)d;
        memory[d] = device_copy(&value, sizeof value);
    }
    for (int repeat = 0; repeat < 3; repeat++) {
        CHECK(ncclGroupStart() == ncclSuccess);
        CHECK(ncclGroupStart() == ncclSuccess);
        for (int d = 0; d < DEVICES; d++)
            CHECK(ncclAllReduce(memory[d], memory[d], 1, ncclFloat32, ncclSum, comms[d], streams[d]) == ncclSuccess);
        CHECK(ncclGroupEnd() == ncclSuccess);
        for (int d = 0; d < DEVICES; d++) {
            device_read(&value, memory[d], sizeof value);
            CHECK(repeat || value == (float)d); /* nothing was launched yet */
        }
        CHECK(ncclGroupEnd() == ncclSuccess);
        for (int d = 0; d < DEVICES; d++) CHECK(cudaStreamSynchronize(streams[d]) == cudaSuccess);
    }
    for (int d = 0; d < DEVICES; d++) {
        device_read(&value, memory[d], sizeof value);
        CHECK(value == 6 * 4 * 4);
        CHECK(ncclCommDestroy(comms[d]) == ncclSuccess);
        cudaFree(memory[d]);
        cudaStreamDestroy(streams[d]);
    }
}

static void ranks_are_made_in_a_group(void **state)
{
    (void)state;
    ncclUniqueId id;
    ncclComm_t comms[3], halves[3];
    cudaStream_t streams[3];
    CHECK(ncclGetUniqueId(&id) == ncclSuccess && ncclGroupStart() == ncclSuccess);
    for (int r = 0; r < 3; r++) {
        CHECK(cudaSetDevice(r) == cudaSuccess && cudaStreamCreate(&streams[r]) == cudaSuccess);
        CHECK(ncclCommInitRank(&comms[r], 3, id, r) == ncclSuccess);
    }
    CHECK(ncclGroupEnd() == ncclSuccess);
    CHECK(ncclGroupStart() == ncclSuccess);
    for (int r = 0; r < 3; r++) CHECK(ncclCommSplit(comms[r], r == 1, -r, &halves[r], NULL) == ncclSuccess);
    CHECK(ncclGroupEnd() == ncclSuccess);
    static const int ranks[3] = {1, 0, 0}, sizes[3] = {2, 1, 2};
    for (int r = 0; r < 3; r++) {
        int rank, size;
        CHECK(ncclCommUserRank(halves[r], &rank) == ncclSuccess && rank == ranks[r]);
        CHECK(ncclCommCount(halves[r], &size) == ncclSuccess && size == sizes[r]);
        CHECK(ncclCommDestroy(halves[r]) == ncclSuccess && ncclCommDestroy(comms[r]) == ncclSuccess);
        cudaStreamDestroy(streams[r]);
    }
}

/* Two processes with two ranks each, in one thread; the unique id comes by another communicator. */
static void two_ranks_of_four(test_rank *r)
{
    ncclUniqueId id;
    ncclComm_t comms[2];
    cudaStream_t streams[2];
    float value, *memory[2];
    CHECK(ncclGetUniqueId(&id) == ncclSuccess);
    char *shared = device_copy(&id, sizeof id);
    CHECK(ncclBroadcast(shared, shared, sizeof id, ncclChar, 0, r->comm, r->stream) == ncclSuccess);
    CHECK(cudaStreamSynchronize(r->stream) == cudaSuccess);
    device_read(&id, shared, sizeof id);
    cudaFree(shared);
    CHECK(ncclGroupStart() == ncclSuccess);
    for (int i = 0; i < 2; i++) {
        CHECK(cudaSetDevice(i) == cudaSuccess && cudaStreamCreate(&streams[i]) == cudaSuccess);
        CHECK(ncclCommInitRank(&comms[i], 4, id, 2 * r->rank + i) == ncclSuccess);
    }
    CHECK(ncclGroupEnd() == ncclSuccess && ncclGroupStart() == ncclSuccess);
    for (int i = 0; i < 2; i++) {
        value = (float)(2 * r->rank + i);
        memory[i] = device_copy(&value, sizeof value);
        CHECK(ncclAllReduce(memory[i], memory[i], 1, ncclFloat32, ncclSum, comms[i], streams[i]) == ncclSuccess);
    }
    CHECK(ncclGroupEnd() == ncclSuccess);
    for (int i = 0; i < 2; i++) {
        CHECK(cudaStreamSynchronize(streams[i]) == cudaSuccess);
        device_read(&value, memory[i], sizeof value);
        CHECK(value == 6);
        cudaFree(memory[i]);
        CHECK(ncclCommDestroy(comms[i]) == ncclSuccess);
        cudaStreamDestroy(streams[i]);
    }
    CHECK(cudaSetDevice(r->rank) == cudaSuccess);
}

static void processes_have_several_ranks(void **state)
{
    (void)state;
    ranks_run_processes(2, two_ranks_of_four);
}

/* ---- Streams ---- */

/* A group's operations on several streams are one point at which they meet. */
static void several_streams(test_rank *r)
{
    cudaStream_t other;
    float one[COUNT], first, *a, *b;
    for (int i = 0; i < COUNT; i++) one[i] = 1;
    CHECK(cudaStreamCreate(&other) == cudaSuccess);
    a = device_copy(one, sizeof one);
    b = device_copy(one, sizeof one);
    for (int repeat = 0; repeat < 20; repeat++) {
        CHECK(ncclGroupStart() == ncclSuccess);
        CHECK(ncclAllReduce(a, b, COUNT, ncclFloat32, ncclSum, r->comm, r->stream) == ncclSuccess);
        CHECK(ncclAllReduce(b, a, COUNT, ncclFloat32, ncclMax, r->comm, other) == ncclSuccess);
        CHECK(ncclGroupEnd() == ncclSuccess);
        /* The next two run one after the other, on streams that know nothing of each other. */
        CHECK(ncclAllReduce(a, b, COUNT, ncclFloat32, ncclAvg, r->comm, other) == ncclSuccess);
        CHECK(ncclAllReduce(b, a, COUNT, ncclFloat32, ncclMin, r->comm, r->stream) == ncclSuccess);
    }
    CHECK(cudaStreamSynchronize(other) == cudaSuccess && cudaStreamSynchronize(r->stream) == cudaSuccess);
    device_read(&first, a, sizeof first);
    double expected = 1;
    for (int repeat = 0; repeat < 20; repeat++) expected *= r->size;
    CHECK(first == (float)expected);
    cudaFree(a);
    cudaFree(b);
    cudaStreamDestroy(other);
}

static void streams_are_kept_in_order(void **state)
{
    (void)state;
    ranks_run_threads(2, several_streams, NULL);
}

static void captured(test_rank *r)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    float value = 1, *memory = device_copy(&value, sizeof value);
    CHECK(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, r->comm, r->stream) == ncclSuccess);
    CHECK(ncclGroupStart() == ncclSuccess);
    CHECK(ncclBroadcast(memory, memory, 1, ncclFloat32, 0, r->comm, r->stream) == ncclSuccess);
    CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclMax, r->comm, r->stream) == ncclSuccess);
    CHECK(ncclGroupEnd() == ncclSuccess);
    CHECK(cudaStreamEndCapture(r->stream, &graph) == cudaSuccess);
    CHECK(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
    device_read(&value, memory, sizeof value);
    CHECK(value == 1);
    for (int i = 0; i < 5; i++) CHECK(cudaGraphLaunch(executable, r->stream) == cudaSuccess);
    CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, r->comm, r->stream) == ncclSuccess);
    CHECK(cudaStreamSynchronize(r->stream) == cudaSuccess);
    device_read(&value, memory, sizeof value);
    double expected = 1;
    for (int i = 0; i < 6; i++) expected *= r->size;
    CHECK(value == (float)expected);
    CHECK(cudaGraphExecDestroy(executable) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
    cudaFree(memory);
}

static void graphs_replay_operations(void **state)
{
    (void)state;
    ranks_run_threads(3, captured, NULL);
}

/* ---- Split and shrink ---- */

static void split_and_shrink(test_rank *r)
{
    ncclComm_t half, reversed, none, rest;
    int rank, size;
    CHECK(ncclCommSplit(r->comm, r->rank % 2, r->rank, &half, NULL) == ncclSuccess);
    CHECK(ncclCommCount(half, &size) == ncclSuccess && size == (r->size + 1 - r->rank % 2) / 2);
    check_sum(half, r->stream);
    CHECK(ncclCommSplit(r->comm, 7, r->size - r->rank, &reversed, NULL) == ncclSuccess);
    CHECK(ncclCommUserRank(reversed, &rank) == ncclSuccess && rank == r->size - 1 - r->rank);
    check_sum(reversed, r->stream);
    CHECK(ncclCommSplit(r->comm, r->rank ? 0 : NCCL_SPLIT_NOCOLOR, 0, &none, NULL) == ncclSuccess);
    CHECK(!none == !r->rank);
    if (none) check_sum(none, r->stream);
    if (r->rank != 1) {
        int excluded[] = {1};
        CHECK(ncclCommShrink(r->comm, excluded, 1, &rest, NULL, NCCL_SHRINK_DEFAULT) == ncclSuccess);
        CHECK(ncclCommCount(rest, &size) == ncclSuccess && size == r->size - 1);
        CHECK(ncclCommUserRank(rest, &rank) == ncclSuccess && rank == r->rank - (r->rank > 1));
        check_sum(rest, r->stream);
        CHECK(ncclCommDestroy(rest) == ncclSuccess);
    }
    check_sum(r->comm, r->stream);
    CHECK(ncclCommDestroy(half) == ncclSuccess && ncclCommDestroy(reversed) == ncclSuccess);
    CHECK(ncclCommDestroy(none) == ncclSuccess);
}

/* Many splits in a row, in which fast ranks must not overwrite what slow ones have not read. */
static void many_splits(test_rank *r)
{
    for (int i = 0; i < 30; i++) {
        ncclComm_t part;
        int size;
        bool alone = (i + r->rank) % r->size == 0;
        if ((i + r->rank) % 4 == 1) sleep_ms(2);
        CHECK(ncclCommSplit(r->comm, alone, 0, &part, NULL) == ncclSuccess);
        CHECK(ncclCommCount(part, &size) == ncclSuccess && size == (alone ? 1 : r->size - 1));
        CHECK(ncclCommDestroy(part) == ncclSuccess);
    }
}

static void communicators_split_and_shrink(void **state)
{
    (void)state;
    ranks_run_threads(4, split_and_shrink, NULL);
    ranks_run_threads(3, many_splits, NULL);
    ranks_run_processes(3, split_and_shrink);
}

/* ---- Without blocking ---- */

static ncclResult_t settled(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;
    for (int i = 0; i < 100000 && state == ncclInProgress; i++) {
        CHECK(ncclCommGetAsyncError(comm, &state) == ncclSuccess);
        if (state == ncclInProgress) sleep_ms(1);
    }
    return state;
}

static void calls_that_do_not_block(void **state)
{
    (void)state;
    ncclUniqueId id;
    ncclComm_t comms[2], halves[2];
    cudaStream_t streams[2];
    float value[2] = {1, 2}, *memory[2], result;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t asynchronous;
    config.blocking = 0;
    CHECK(ncclGetUniqueId(&id) == ncclSuccess);
    for (int r = 0; r < 2; r++) {
        CHECK(cudaSetDevice(r) == cudaSuccess && cudaStreamCreate(&streams[r]) == cudaSuccess);
        memory[r] = device_copy(&value[r], sizeof value[r]);
        CHECK(ncclCommInitRankConfig(&comms[r], 2, id, r, &config) == ncclInProgress && comms[r]);
        CHECK(ncclCommGetAsyncError(comms[0], &asynchronous) == ncclSuccess);
        CHECK(asynchronous == (r == 0 ? ncclInProgress : ncclSuccess));
        if (r == 0)
            CHECK(ncclAllReduce(memory[0], memory[0], 1, ncclFloat32, ncclSum, comms[0], streams[0]) ==
                  ncclInvalidArgument);
    }
    for (int r = 0; r < 2; r++) CHECK(settled(comms[r]) == ncclSuccess);
    for (int r = 0; r < 2; r++)
        CHECK(ncclAllReduce(memory[r], memory[r], 1, ncclFloat32, ncclSum, comms[r], streams[r]) == ncclInProgress);
    for (int r = 0; r < 2; r++) {
        CHECK(settled(comms[r]) == ncclSuccess && cudaStreamSynchronize(streams[r]) == cudaSuccess);
        device_read(&result, memory[r], sizeof result);
        CHECK(result == 3);
    }
    for (int r = 0; r < 2; r++) CHECK(ncclCommSplit(comms[r], 0, r, &halves[r], NULL) == ncclInProgress);
    /* The parent tells when it is done, and then there is a handle. */
    CHECK(!halves[0] && !halves[1]);
    for (int r = 0; r < 2; r++) CHECK(settled(comms[r]) == ncclSuccess && halves[r]);
    for (int r = 0; r < 2; r++) CHECK(settled(halves[r]) == ncclSuccess);
    /* One rank is in no part of a split; its parent tells when it is done. */
    ncclComm_t one, none;
    CHECK(ncclCommSplit(comms[0], NCCL_SPLIT_NOCOLOR, 0, &none, NULL) == ncclInProgress && !none);
    CHECK(ncclCommGetAsyncError(comms[0], &asynchronous) == ncclSuccess && asynchronous == ncclInProgress);
    CHECK(ncclCommSplit(comms[1], 5, 0, &one, NULL) == ncclInProgress);
    for (int r = 0; r < 2; r++) CHECK(settled(comms[r]) == ncclSuccess);
    CHECK(one && settled(one) == ncclSuccess);
    CHECK(ncclCommDestroy(one) == ncclSuccess);
    for (int r = 0; r < 2; r++) {
        CHECK(ncclCommFinalize(comms[r]) == ncclInProgress && settled(comms[r]) == ncclSuccess);
        CHECK(ncclCommDestroy(halves[r]) == ncclSuccess && ncclCommDestroy(comms[r]) == ncclSuccess);
        cudaFree(memory[r]);
        cudaStreamDestroy(streams[r]);
    }
    /* A communicator whose peer never comes is given up. */
    CHECK(ncclGetUniqueId(&id) == ncclSuccess);
    CHECK(ncclCommInitRankConfig(&comms[0], 2, id, 0, &config) == ncclInProgress);
    CHECK(ncclCommAbort(comms[0]) == ncclSuccess);
}

/* ---- Abort ---- */

typedef struct {
    pthread_barrier_t barrier;
    _Atomic int aborted;
} abort_test;

/* Rank 0 waits for an operation that rank 1 never calls, until another thread aborts. */
static void *wait_for_stream(void *argument)
{
    test_rank *r = argument;
    CHECK(cudaStreamSynchronize(r->stream) == cudaSuccess);
    return NULL;
}

static void abort_while_blocked(test_rank *r)
{
    pthread_t waiting;
    float value = 1, *memory = device_copy(&value, sizeof value);
    pthread_barrier_t *barrier = (pthread_barrier_t *)r->argument;
    if (r->rank == 0) {
        for (int i = 0; i < 3; i++) /* the later ones have not begun when it is aborted */
            CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, r->comm, r->stream) == ncclSuccess);
        CHECK(pthread_create(&waiting, NULL, wait_for_stream, r) == 0);
        sleep_ms(50);
        CHECK(cudaStreamQuery(r->stream) == cudaErrorNotReady);
        double begin = clock_ms();
        CHECK(ncclCommAbort(r->comm) == ncclSuccess);
        pthread_join(waiting, NULL);
        printf("abort while blocked: %.2f ms\n", clock_ms() - begin);
        r->comm = NULL;
    }
    pthread_barrier_wait(barrier);
    cudaFree(memory);
}

static void abort_ends_what_waits(void **state)
{
    (void)state;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    ranks_run_threads(2, abort_while_blocked, &barrier);
    pthread_barrier_destroy(&barrier);
}

static void revoke_then_shrink(test_rank *r)
{
    float value = 1, *memory = device_copy(&value, sizeof value);
    ncclComm_t rest;
    ncclResult_t state;
    if (r->rank != 2) {
        CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, r->comm, r->stream) == ncclSuccess);
        sleep_ms(10);
        CHECK(ncclCommRevoke(r->comm, NCCL_REVOKE_DEFAULT) == ncclSuccess);
        CHECK(cudaStreamSynchronize(r->stream) == cudaSuccess);
        CHECK(ncclCommGetAsyncError(r->comm, &state) == ncclSuccess && state == ncclSuccess);
        CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, r->comm, r->stream) == ncclInvalidUsage);
        CHECK(ncclCommFinalize(r->comm) == ncclInvalidUsage);
        int excluded[] = {2};
        CHECK(ncclCommShrink(r->comm, excluded, 1, &rest, NULL, NCCL_SHRINK_ABORT) == ncclSuccess);
        check_sum(rest, r->stream);
        CHECK(ncclCommDestroy(rest) == ncclSuccess);
    }
    cudaFree(memory);
}

static void revoked_communicators_shrink(void **state)
{
    (void)state;
    ranks_run_threads(3, revoke_then_shrink, NULL);
}

/* ---- Mismatches and deaths ---- */

static void call_with_different_counts(test_rank *r)
{
    float values[COUNT] = {0}, *memory = device_copy(values, sizeof values);
    size_t count = r->rank ? COUNT : COUNT / 2;
    CHECK(ncclAllReduce(memory, memory, count, ncclFloat32, ncclSum, r->comm, r->stream) == ncclSuccess);
    if (r->argument) { /* it must hang */
        sleep_ms(100);
        CHECK(cudaStreamQuery(r->stream) == cudaErrorNotReady);
        CHECK(ncclCommAbort(r->comm) == ncclSuccess);
        r->comm = NULL;
    }
    CHECK(cudaStreamSynchronize(r->stream) == cudaSuccess);
    if (!r->argument) check_sum(r->comm, r->stream);
    cudaFree(memory);
}

static void call_different_operations(test_rank *r)
{
    float values[4 * COUNT] = {0}, *memory = device_copy(values, sizeof values);
    ncclResult_t result = r->rank
                              ? ncclAllGather(memory, memory, COUNT / 2, ncclFloat32, r->comm, r->stream)
                              : ncclReduceScatter(memory, memory, COUNT / 4, ncclFloat16, ncclMax, r->comm, r->stream);
    CHECK(result == ncclSuccess && cudaStreamSynchronize(r->stream) == cudaSuccess);
    check_sum(r->comm, r->stream);
    cudaFree(memory);
}

static void mismatches_hang_or_corrupt(void **state)
{
    (void)state;
    ranks_run_threads(2, call_with_different_counts, "hang");
    setenv("HOSTNCCL_MISMATCH", "corrupt", 1);
    ranks_run_threads(2, call_with_different_counts, NULL);
    ranks_run_threads(3, call_different_operations, NULL);
    unsetenv("HOSTNCCL_MISMATCH");
}

/* Rank 1 dies without a word; rank 0 waits for it, as it would on GPUs, until it aborts. */
static void survive(test_rank *r)
{
    float value = 1, *memory = device_copy(&value, sizeof value);
    if (r->rank == 1) kill(getpid(), SIGKILL);
    CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, r->comm, r->stream) == ncclSuccess);
    sleep_ms(100);
    CHECK(cudaStreamQuery(r->stream) == cudaErrorNotReady);
    CHECK(ncclCommAbort(r->comm) == ncclSuccess);
    r->comm = NULL;
    CHECK(cudaStreamSynchronize(r->stream) == cudaSuccess);
    cudaFree(memory);
}

static void survivors_can_abort(void **state)
{
    (void)state;
    ncclUniqueId id;
    int pids[2], ends[2];
    CHECK(ncclGetUniqueId(&id) == ncclSuccess);
    for (int r = 0; r < 2; r++) pids[r] = ranks_start_process(&id, r, 2, survive);
    for (int r = 0; r < 2; r++) CHECK(waitpid(pids[r], &ends[r], 0) == pids[r]);
    CHECK(ends[0] == 0 && WIFSIGNALED(ends[1]) && WTERMSIG(ends[1]) == SIGKILL);
}

/* True if the communicator's file still has its name, the text of its unique id. */
static bool has_name(const ncclUniqueId *id)
{
    char path[sizeof id->internal + 16];
    snprintf(path, sizeof path, "/dev/shm/%s", id->internal);
    return access(path, F_OK) == 0;
}

/* True if a process uses the file. */
static bool in_use(const ncclUniqueId *id)
{
    char path[sizeof id->internal + 16];
    snprintf(path, sizeof path, "/dev/shm/%s", id->internal);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    bool used = flock(file, LOCK_EX | LOCK_NB) != 0;
    close(file);
    return used;
}

static void wait_for_death(test_rank *r)
{
    float value = 1, *memory = device_copy(&value, sizeof value);
    CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, r->comm, r->stream) == ncclSuccess);
    CHECK(cudaStreamSynchronize(r->stream) == cudaSuccess);
    char ready = 1;
    CHECK(write(STDOUT_FILENO, &ready, 1) == 1);
    sleep_ms(600000);
}

static void start_with_pipe(ncclUniqueId *id, int pids[2], int count, int size, int *reading)
{
    int ends[2], out = dup(STDOUT_FILENO);
    CHECK(ncclGetUniqueId(id) == ncclSuccess && pipe(ends) == 0);
    fflush(stdout);
    dup2(ends[1], STDOUT_FILENO);
    for (int r = 0; r < count; r++) pids[r] = ranks_start_process(id, r, size, wait_for_death);
    dup2(out, STDOUT_FILENO);
    close(ends[1]);
    close(out);
    *reading = ends[0];
}

static void kill_all(const int *pids, int count)
{
    for (int r = 0; r < count; r++) kill(pids[r], SIGKILL);
    for (int r = 0; r < count; r++) waitpid(pids[r], NULL, 0);
}

/* Killed ranks leave no file: the file of ranks that had all met has no name any more, and others are swept at the next
 * start. */
static void nothing_is_left_behind(void **state)
{
    (void)state;
    int pids[2], reading;
    char ready[2];
    ncclUniqueId id, another;
    start_with_pipe(&id, pids, 2, 2, &reading);
    CHECK(read(reading, ready, 1) == 1 && read(reading, ready, 1) == 1);
    CHECK(!has_name(&id));
    kill_all(pids, 2);
    close(reading);
    start_with_pipe(&id, pids, 1, 2, &reading);
    while (!in_use(&id)) sleep_ms(1);
    CHECK(ncclGetUniqueId(&another) == ncclSuccess);
    CHECK(has_name(&id));
    kill_all(pids, 1);
    close(reading);
    CHECK(ncclGetUniqueId(&another) == ncclSuccess);
    CHECK(!has_name(&id));
}

/* ---- Errors ---- */

static void refused(test_rank *r)
{
    float value = 1, *memory = device_copy(&value, sizeof value);
    ncclRedOp_t op;
    ncclComm_t part;
    void *handle;
    ncclWindow_t window;
    ncclComm_t c = r->comm;
    cudaStream_t s = r->stream;
    CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, NULL, s) == ncclInvalidArgument);
    CHECK(strstr(ncclGetLastError(NULL), "comm"));
    CHECK(ncclAllReduce(NULL, memory, 1, ncclFloat32, ncclSum, c, s) == ncclInvalidArgument);
    CHECK(ncclAllReduce(memory, NULL, 1, ncclFloat32, ncclSum, c, s) == ncclInvalidArgument);
    CHECK(ncclAllReduce(memory, memory, 1, ncclNumTypes, ncclSum, c, s) == ncclInvalidArgument);
    CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclNumOps, c, s) == ncclInvalidArgument);
    CHECK(ncclAllReduce(memory, memory, SIZE_MAX, ncclFloat32, ncclSum, c, s) == ncclInvalidArgument);
    CHECK(ncclBroadcast(memory, memory, 1, ncclFloat32, r->size, c, s) == ncclInvalidArgument);
    CHECK(ncclReduce(memory, memory, 1, ncclFloat32, ncclSum, -1, c, s) == ncclInvalidArgument);
    CHECK(ncclSend(memory, 1, ncclFloat32, r->size, c, s) == ncclInvalidArgument);
    CHECK(ncclRedOpCreatePreMulSum(&op, &value, ncclFloat32, ncclScalarHostImmediate, c) == ncclSuccess);
    CHECK(ncclAllReduce(memory, memory, 1, ncclFloat64, op, c, s) == ncclInvalidArgument);
    CHECK(ncclRedOpDestroy(op, c) == ncclSuccess && ncclRedOpDestroy(op, c) == ncclInvalidArgument);
    CHECK(ncclRedOpDestroy(ncclSum, c) == ncclInvalidArgument);
    CHECK(ncclCommSplit(c, -2, 0, &part, NULL) == ncclInvalidArgument);
    CHECK(ncclCommSplit(c, 0, 0, NULL, NULL) == ncclInvalidArgument);
    CHECK(ncclCommShrink(c, NULL, 1, &part, NULL, 0) == ncclInvalidArgument);
    CHECK(ncclCommCount(c, NULL) == ncclInvalidArgument && ncclCommRevoke(c, 1) == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    /* An error in a group is its end's too, and nothing of it is launched. */
    CHECK(ncclGroupStart() == ncclSuccess);
    CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, c, s) == ncclSuccess);
    CHECK(ncclAllReduce(memory, memory, 1, ncclNumTypes, ncclSum, c, s) == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidArgument);
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    CHECK(ncclGroupStart() == ncclSuccess);
    CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, c, s) == ncclSuccess);
    CHECK(ncclGroupSimulateEnd(&info) == ncclSuccess && info.estimatedTime >= 0);
    CHECK(cudaStreamSynchronize(s) == cudaSuccess);
    device_read(&value, memory, sizeof value);
    CHECK(value == 1);
    CHECK(ncclCommRegister(c, memory, 4, &handle) == ncclSuccess && ncclCommDeregister(c, handle) == ncclSuccess);
    CHECK(ncclCommDeregister(c, &value) == ncclInvalidArgument);
    void *aligned;
    CHECK(ncclMemAlloc(&aligned, 8192) == ncclSuccess);
    void *page = (void *)(((uintptr_t)aligned + 4095) / 4096 * 4096);
    CHECK(ncclCommWindowRegister(c, page, 4096, &window, NCCL_WIN_COLL_SYMMETRIC) == ncclSuccess);
    CHECK(ncclCommWindowDeregister(c, window) == ncclSuccess && ncclMemFree(aligned) == ncclSuccess);
    check_sum(c, s);
    CHECK(ncclCommFinalize(c) == ncclSuccess && ncclCommFinalize(c) == ncclInvalidArgument);
    CHECK(ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, c, s) == ncclInvalidUsage);
    cudaFree(memory);
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    ncclUniqueId id = {0};
    ncclComm_t comm, more[2];
    int version = 0;
    ncclConfig_t config = {0};
    CHECK(ncclGetVersion(&version) == ncclSuccess && version == 22809);
    CHECK(ncclGetVersion(NULL) == ncclInvalidArgument && ncclGetUniqueId(NULL) == ncclInvalidArgument);
    CHECK(ncclCommInitRank(&comm, 1, id, 0) == ncclInvalidArgument);
    strcpy(id.internal, "hostnccl-../../etc/passwd");
    CHECK(ncclCommInitRank(&comm, 1, id, 0) == ncclInvalidArgument);
    CHECK(ncclGetUniqueId(&id) == ncclSuccess);
    CHECK(ncclCommInitRank(NULL, 1, id, 0) == ncclInvalidArgument);
    CHECK(ncclCommInitRank(&comm, 0, id, 0) == ncclInvalidArgument);
    CHECK(ncclCommInitRank(&comm, 2, id, 2) == ncclInvalidArgument);
    CHECK(ncclCommInitRankConfig(&comm, 1, id, 0, &config) == ncclInvalidArgument);
    CHECK(ncclCommInitRankScalable(&comm, 1, 0, 2, &id, NULL) == ncclInvalidArgument);
    CHECK(ncclCommInitAll(more, 2, (int[]){1, 1}) == ncclInvalidUsage);
    CHECK(ncclCommInitAll(more, 2, (int[]){0, 99}) == ncclInvalidUsage);
    setenv("HOSTNCCL_MISMATCH", "sometimes", 1);
    CHECK(ncclCommInitRank(&comm, 1, id, 0) == ncclInvalidArgument);
    CHECK(strstr(ncclGetLastError(NULL), "hang or corrupt"));
    unsetenv("HOSTNCCL_MISMATCH");
    setenv("HOSTNCCL_BANDWIDTH", "1GB", 1);
    CHECK(ncclCommInitRank(&comm, 1, id, 0) == ncclInvalidArgument);
    unsetenv("HOSTNCCL_BANDWIDTH");
    CHECK(ncclCommDestroy(NULL) == ncclSuccess && ncclCommAbort(NULL) == ncclSuccess);
    /* Two ranks of one process on one device, and the same rank twice. */
    CHECK(ncclGroupStart() == ncclSuccess && cudaSetDevice(0) == cudaSuccess);
    CHECK(ncclCommInitRank(&more[0], 2, id, 0) == ncclSuccess && ncclCommInitRank(&more[1], 2, id, 1) == ncclSuccess);
    CHECK(ncclGroupEnd() == ncclInvalidUsage && strstr(ncclGetLastError(NULL), "Duplicate GPU"));
    CHECK(ncclGetUniqueId(&id) == ncclSuccess && ncclGroupStart() == ncclSuccess);
    CHECK(ncclCommInitRank(&more[0], 2, id, 0) == ncclSuccess && ncclCommInitRank(&more[1], 2, id, 0) == ncclSuccess);
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    ranks_run_threads(2, refused, NULL);
}

static void scalable(test_rank *r)
{
    check_sum(r->comm, r->stream);
}

static void one_rank_by_several_ids(void **state)
{
    (void)state;
    ncclUniqueId ids[1];
    ncclComm_t comm;
    cudaStream_t stream;
    CHECK(cudaSetDevice(0) == cudaSuccess && cudaStreamCreate(&stream) == cudaSuccess);
    CHECK(ncclGetUniqueId(&ids[0]) == ncclSuccess);
    CHECK(ncclCommInitRankScalable(&comm, 1, 0, 1, ids, NULL) == ncclSuccess);
    check_sum(comm, stream);
    CHECK(ncclCommDestroy(comm) == ncclSuccess);
    cudaStreamDestroy(stream);
    for (int i = 0; i < 5; i++) ranks_run_threads(4, scalable, NULL); /* made and ended again and again */
}

int main(int argc, char **argv)
{
    ranks_enter(argc, argv, (rank_body *[]){split_and_shrink, wait_for_death, two_ranks_of_four, survive, NULL});
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_refused),         cmocka_unit_test(one_thread_has_all_devices),
        cmocka_unit_test(ranks_are_made_in_a_group),    cmocka_unit_test(one_rank_by_several_ids),
        cmocka_unit_test(processes_have_several_ranks), cmocka_unit_test(streams_are_kept_in_order),
        cmocka_unit_test(graphs_replay_operations),     cmocka_unit_test(communicators_split_and_shrink),
        cmocka_unit_test(calls_that_do_not_block),      cmocka_unit_test(abort_ends_what_waits),
        cmocka_unit_test(revoked_communicators_shrink), cmocka_unit_test(mismatches_hang_or_corrupt),
        cmocka_unit_test(survivors_can_abort),          cmocka_unit_test(nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
