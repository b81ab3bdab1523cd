/* Operations of which one knows from outside when they ran, to 0.1 s: all wait for a late rank, some are in a group,
 * some captured. If the shim recorded them, each rank looks into the record of its own process: what ran when, and
 * what streams have finished. With --nonblocking the communicators do not block, and nothing is captured. */
#include "tests/nccl/programs/shared/own_record.h"
#include "tests/nccl/programs/shared/ranks.h"

#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool nonblocking;

enum { COUNT = 1000, LATE_MS = 200, SLACK_NS = 100000000, ROUNDS = 20 };

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The time at which the late rank's stream went on; 0 if that rank was another process. */
static _Atomic int64_t late_until_ns;

static void be_late(void *unused)
{
    (void)unused;
    usleep(LATE_MS * 1000);
    late_until_ns = now_ns();
}

/* ---- The record ---- */

typedef struct {
    slc_own_record own;
    const slc_record_communicator *row;
    unsigned row_number;
} record;

/* Finds the rank's row; false if the shim wrote none. */
static bool open_record(record *it, int rank)
{
    if (!slc_own_record_open(&it->own)) return false;
    CHECK(it->own.times != NULL, "the record has no times");
    for (unsigned i = 0; i < it->own.header->communicators; i++) {
        if (it->own.rows[i].rank != rank) continue;
        it->row = &it->own.rows[i];
        it->row_number = i;
    }
    CHECK(it->row != NULL, "the record has no row of rank %d", rank);
    return true;
}

/* The index of the rank's operation with this number. */
static uint64_t find_operation(const record *it, uint32_t number)
{
    for (uint64_t i = 0; i < it->own.header->entries; i++) {
        const slc_record_entry *entry = &it->own.entries[i];
        unsigned operation = (unsigned)(entry->stream_operation_dtype >> 48) & 0xff;
        if (entry->send_communicator >> 48 == it->row_number && entry->number == number &&
            operation <= SLC_RECORD_RECEIVE)
            return i;
    }
    CHECK(false, "operation %u is not in the record", number);
    return 0;
}

/* ---- The program ---- */

typedef struct {
    slc_rank *rank;
    ncclComm_t communicator;
    cudaStream_t stream;
    int64_t *data;
    int64_t begin_ns, end_ns; /* around everything that is not captured */
    uint32_t captured;        /* number of the first captured operation; two are */
} place;

/* Asks until the call is not in progress. */
static void settle(const place *p, ncclResult_t result)
{
    while (nonblocking && result == ncclInProgress) {
        sched_yield();
        NCCL(ncclCommGetAsyncError(p->communicator, &result));
    }
    CHECK(result == ncclSuccess, "a call: %s", ncclGetErrorString(result));
}

static ncclResult_t begin_sum(place *p, size_t count)
{
    p->rank->calls++;
    return ncclAllReduce(p->data, p->data, count, ncclInt64, ncclSum, p->communicator, p->stream);
}

static void sum(place *p, size_t count)
{
    settle(p, begin_sum(p, count));
}

/* The late rank has not come, so the first operation is not finished, whatever NCCL's thread does just now. */
static void check_nothing_is_done(const place *p)
{
    record it = {0};
    if (!open_record(&it, p->rank->rank)) return;
    uint64_t done = __atomic_load_n(&it.row->done, __ATOMIC_ACQUIRE);
    CHECK(!done || late_until_ns, "rank %d: the stream finished operation %llu before the late rank came",
          p->rank->rank, (unsigned long long)done);
}

/* The record does not say that the operation is finished as long as nobody has asked NCCL. */
static void call_without_asking(place *p)
{
    record it = {0};
    ncclResult_t result = begin_sum(p, COUNT);
    CHECK(result == ncclInProgress, "a call that does not block: %s", ncclGetErrorString(result));
    usleep(LATE_MS * 1000 / 4);
    if (open_record(&it, p->rank->rank)) {
        uint64_t done = __atomic_load_n(&it.row->done, __ATOMIC_ACQUIRE), number = p->rank->calls;
        CHECK(done < number && it.row->unlaunched == number, "rank %d: %llu of %llu operations are finished",
              p->rank->rank, (unsigned long long)done, (unsigned long long)number);
    }
    settle(p, result);
    CHECK(!it.row || !it.row->unlaunched, "operation %llu counts as not launched", (unsigned long long)p->rank->calls);
}

static void capture(place *p)
{
    cudaGraph_t graph;
    CUDA(cudaStreamBeginCapture(p->stream, cudaStreamCaptureModeThreadLocal));
    sum(p, COUNT);
    NCCL(ncclGroupStart());
    sum(p, COUNT);
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamEndCapture(p->stream, &graph));
    CUDA(cudaGraphDestroy(graph));
}

static void call_everything(place *p)
{
    p->begin_ns = now_ns();
    if (p->rank->rank) CUDA(cudaLaunchHostFunc(p->stream, be_late, NULL));
    sum(p, COUNT); /* number 1 */
    check_nothing_is_done(p);
    NCCL(ncclGroupStart());
    for (int i = 0; i < 3; i++) { /* numbers 2, 3, 4 */
        ncclResult_t result = begin_sum(p, 10);
        CHECK(result == ncclSuccess || result == ncclInProgress, "a call in a group: %s", ncclGetErrorString(result));
    }
    settle(p, ncclGroupEnd());
    for (int i = 0; i < ROUNDS; i++) sum(p, COUNT);
    if (nonblocking) call_without_asking(p);
    CUDA(cudaStreamSynchronize(p->stream));
    p->end_ns = now_ns();
    p->captured = (uint32_t)p->rank->calls + 1;
    if (!nonblocking) capture(p);
}

static void check_record(const place *p, const record *it)
{
    int64_t before = p->begin_ns;
    CHECK(it->row->done == p->captured - 1, "rank %d: the stream says it finished %llu of %u operations", p->rank->rank,
          (unsigned long long)it->row->done, p->captured - 1);
    CHECK(!it->own.header->times_lost, "%llu times are lost", (unsigned long long)it->own.header->times_lost);
    for (uint32_t number = 1; number <= p->rank->calls; number++) {
        uint64_t index = find_operation(it, number);
        const slc_record_time *time = &it->own.times[index];
        bool captured = number >= p->captured, timed = time->sequence == it->own.entries[index].sequence;
        unsigned flags = it->own.entries[index].group_flags >> 24;
        CHECK(captured == !!(flags & SLC_RECORD_CAPTURED), "operation %u: flags %u", number, flags);
        CHECK(timed != captured, "operation %u, captured %d, has times: %d", number, captured, timed);
        if (captured) continue;
        CHECK(time->begin_ns <= time->end_ns && time->end_ns <= p->end_ns + SLACK_NS, "operation %u: %lld to %lld ns",
              number, (long long)(time->begin_ns - p->begin_ns), (long long)(time->end_ns - p->begin_ns));
        bool same = number == 3 || number == 4; /* as the first one of their group */
        CHECK(same ? time->begin_ns == before : time->begin_ns >= before - SLACK_NS,
              "operation %u begins %lld ns after the one before it", number, (long long)(time->begin_ns - before));
        before = time->begin_ns;
        CHECK(time->end_ns >= late_until_ns - SLACK_NS, "operation %u ends %lld ns before the late rank came", number,
              (long long)(late_until_ns - time->end_ns));
    }
}

static void measured(slc_rank *rank)
{
    place p = {.rank = rank};
    record it = {0};
    int64_t host[COUNT];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = !nonblocking;
    settle(&p, ncclCommInitRankConfig(&p.communicator, rank->size, rank->ids[0], rank->rank, &config));
    CUDA(cudaStreamCreateWithFlags(&p.stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&p.data, sizeof host));
    for (int i = 0; i < COUNT; i++) host[i] = i * (rank->rank + 1);
    CUDA(cudaMemcpy(p.data, host, sizeof host, cudaMemcpyHostToDevice));
    call_everything(&p);
    CUDA(cudaMemcpy(host, p.data, sizeof host, cudaMemcpyDeviceToHost));
    slc_rank_result(rank, host, sizeof host);
    CUDA(cudaStreamDestroy(p.stream));
    if (nonblocking) settle(&p, ncclCommFinalize(p.communicator));
    NCCL(ncclCommDestroy(p.communicator));
    if (open_record(&it, rank->rank)) check_record(&p, &it);
    CUDA(cudaFree(p.data));
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) nonblocking |= !strcmp(argv[i], "--nonblocking");
    return slc_ranks_run(&argc, argv, 2, 120, measured);
}
