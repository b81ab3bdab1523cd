/* The transport nccl by itself, on the small NCCL: each operation with each type and sizes that leave remainders, the
 * rules of groups, launches that come late, ranks that are gone, aborts. Values are small integers, so a sum has the
 * same bits in every order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/nccl/transport/rank_end.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

static const sluice_dtype types[] = {SLUICE_FP32, SLUICE_BF16, SLUICE_INT64, SLUICE_FP64, SLUICE_UINT8};
static const size_t counts[] = {1, 16, 777, 65537};
enum { TYPES = 5 };
#ifdef __SANITIZE_THREAD__ /* which sees as much in less */
enum { COUNTS = 3, WORLD_MOST = 2 };
#else
enum { COUNTS = 4, WORLD_MOST = RANKS_MOST };
#endif

/* ---- Values ---- */

/* Returns the element i of the data that rank `rank` sends. */
static int value_of(int rank, size_t i)
{
    return (int)((i * 7 + (size_t)rank * 5) % 23) + 1;
}

static int sum_of(int size, size_t i)
{
    int sum = 0;
    for (int r = 0; r < size; r++) sum += value_of(r, i);
    return sum;
}

static void write_value(void *memory, sluice_dtype dtype, size_t i, int value)
{
    switch (dtype) {
    case SLUICE_FP32: ((float *)memory)[i] = (float)value; return;
    case SLUICE_BF16: ((uint16_t *)memory)[i] = sluice_bf16_from_float((float)value); return;
    case SLUICE_FP64: ((double *)memory)[i] = value; return;
    case SLUICE_INT64: ((int64_t *)memory)[i] = value; return;
    case SLUICE_UINT8: ((uint8_t *)memory)[i] = (uint8_t)value; return;
    }
}

/* Device memory with value_of(rank, first + i) at its place i, or with -1 everywhere if rank is -1. */
static void *make_values(sluice_dtype dtype, int rank, size_t first, size_t count)
{
    const size_t bytes = count * sluice_dtype_bytes(dtype);
    void *values = malloc(bytes);
    CHECK(values);
    for (size_t i = 0; i < count; i++) write_value(values, dtype, i, rank < 0 ? -1 : value_of(rank, first + i));
    void *memory = device_copy(values, bytes);
    free(values);
    return memory;
}

/* Checks that place i holds wanted(key, i), and frees the memory. */
static void check_values(void *memory, sluice_dtype dtype, size_t count, int (*wanted)(int, size_t), int key,
                         size_t first)
{
    const size_t width = sluice_dtype_bytes(dtype);
    unsigned char *got = malloc(count * width), one[8];
    CHECK(got);
    device_read(got, memory, count * width);
    for (size_t i = 0; i < count; i++) {
        write_value(one, dtype, 0, wanted(key, first + i));
        CHECK(memcmp(got + i * width, one, width) == 0);
    }
    free(got);
    CHECK(cudaFree(memory) == cudaSuccess);
}

/* ---- Each operation ---- */

static void begin(rank_end *end)
{
    CHECK(end->collectives->group_begin(end->self) == SLUICE_OK);
}

static void sum_everywhere(rank_end *end, sluice_dtype dtype, size_t count, bool in_place)
{
    void *in = make_values(dtype, end->rank, 0, count), *out = in_place ? in : make_values(dtype, -1, 0, count);
    begin(end);
    CHECK(end->collectives->all_reduce(end->self, in, out, count, dtype) == SLUICE_OK);
    end_group(end);
    if (!in_place) check_values(in, dtype, count, value_of, end->rank, 0);
    check_values(out, dtype, count, sum_of, end->size, 0);
}

static void sum_and_scatter(rank_end *end, sluice_dtype dtype, size_t count, bool in_place)
{
    const size_t whole = count * (size_t)end->size, first = count * (size_t)end->rank;
    char *in = make_values(dtype, end->rank, 0, whole), *own = in + first * sluice_dtype_bytes(dtype);
    void *out = in_place ? own : make_values(dtype, -1, 0, count);
    begin(end);
    CHECK(end->collectives->reduce_scatter(end->self, in, out, count, dtype) == SLUICE_OK);
    end_group(end);
    if (!in_place) {
        check_values(in, dtype, whole, value_of, end->rank, 0);
        check_values(out, dtype, count, sum_of, end->size, first);
        return;
    }
    void *copy = make_values(dtype, -1, 0, count); /* so that it can be freed */
    device_move(copy, out, count * sluice_dtype_bytes(dtype));
    check_values(copy, dtype, count, sum_of, end->size, first);
    CHECK(cudaFree(in) == cudaSuccess);
}

/* Every rank's part is value_of(its rank, i). */
static void gather_everywhere(rank_end *end, sluice_dtype dtype, size_t count, bool in_place)
{
    const size_t bytes = count * sluice_dtype_bytes(dtype);
    void *in = make_values(dtype, end->rank, 0, count);
    char *out = make_values(dtype, -1, 0, count * (size_t)end->size);
    char *own = out + bytes * (size_t)end->rank;
    if (in_place) device_move(own, in, bytes);
    begin(end);
    CHECK(end->collectives->all_gather(end->self, in_place ? own : in, out, count, dtype) == SLUICE_OK);
    end_group(end);
    for (int r = 0; r < end->size; r++) {
        void *part = make_values(dtype, -1, 0, count);
        device_move(part, out + bytes * (size_t)r, bytes);
        check_values(part, dtype, count, value_of, r, 0);
    }
    CHECK(cudaFree(in) == cudaSuccess && cudaFree(out) == cudaSuccess);
}

static void broadcast_from_each(rank_end *end, sluice_dtype dtype, size_t count)
{
    for (int root = 0; root < end->size; root++) {
        void *memory = make_values(dtype, end->rank == root ? root : -1, 0, count);
        begin(end);
        CHECK(end->collectives->broadcast(end->self, memory, count, dtype, root) == SLUICE_OK);
        end_group(end);
        check_values(memory, dtype, count, value_of, root, 0);
    }
}

/* Sends and receives between every pair in both directions, all in one group. */
static void exchange_with_each(rank_end *end, sluice_dtype dtype, size_t count)
{
    void *in[RANKS_MOST], *out = make_values(dtype, end->rank, 3, count);
    begin(end);
    for (int peer = 0; peer < end->size; peer++) {
        if (peer == end->rank) continue;
        in[peer] = make_values(dtype, -1, 0, count);
        CHECK(end->collectives->send(end->self, peer, out, count, dtype) == SLUICE_OK);
        CHECK(end->collectives->receive(end->self, peer, in[peer], count, dtype) == SLUICE_OK);
    }
    end_group(end);
    for (int peer = 0; peer < end->size; peer++)
        if (peer != end->rank) check_values(in[peer], dtype, count, value_of, peer, 3);
    check_values(out, dtype, count, value_of, end->rank, 3);
}

static void every_operation(rank_end *end)
{
    for (int t = 0; t < TYPES; t++)
        for (int n = 0; n < COUNTS; n++)
            for (int in_place = 0; in_place < 2; in_place++) {
                gather_everywhere(end, types[t], counts[n], in_place);
                if (types[t] == SLUICE_UINT8) continue;
                sum_everywhere(end, types[t], counts[n], in_place);
                sum_and_scatter(end, types[t], counts[n], in_place);
            }
    for (int t = 0; t < TYPES; t++)
        for (int n = 0; n < COUNTS; n++) {
            broadcast_from_each(end, types[t], counts[n]);
            exchange_with_each(end, types[t], counts[n]);
        }
}

static void operations_give_what_they_say(void **state)
{
    (void)state;
    for (int size = 1; size <= WORLD_MOST; size++) ends_run(size, every_operation, NULL);
}

/* ---- Groups ---- */

/* Many calls of all kinds in one group, of which the first array's first room is too small. */
static void one_large_group(rank_end *end)
{
    enum { ROUNDS = 40, COUNT = 33 };
    const size_t size = (size_t)end->size;
    void *sums[ROUNDS], *whole[ROUNDS], *parts[ROUNDS], *arrived[ROUNDS];
    const int right = (end->rank + 1) % end->size, left = (end->rank + end->size - 1) % end->size;
    begin(end);
    for (int k = 0; k < ROUNDS; k++) {
        sums[k] = make_values(SLUICE_FP32, end->rank, (size_t)k, COUNT);
        whole[k] = make_values(SLUICE_BF16, end->rank, 0, COUNT * size);
        parts[k] = make_values(SLUICE_BF16, -1, 0, COUNT);
        arrived[k] = make_values(SLUICE_INT64, -1, 0, COUNT);
        CHECK(end->collectives->all_reduce(end->self, sums[k], sums[k], COUNT, SLUICE_FP32) == SLUICE_OK);
        CHECK(end->collectives->reduce_scatter(end->self, whole[k], parts[k], COUNT, SLUICE_BF16) == SLUICE_OK);
    }
    end_group(end);
    void *message = make_values(SLUICE_INT64, end->rank, 9, COUNT);
    begin(end);
    for (int k = 0; k < ROUNDS; k++) CHECK(end->collectives->send(end->self, right, message, COUNT, SLUICE_INT64) == 0);
    for (int k = 0; k < ROUNDS; k++)
        CHECK(end->collectives->receive(end->self, left, arrived[k], COUNT, SLUICE_INT64) == SLUICE_OK);
    end_group(end);
    for (int k = 0; k < ROUNDS; k++) {
        check_values(sums[k], SLUICE_FP32, COUNT, sum_of, end->size, (size_t)k);
        check_values(parts[k], SLUICE_BF16, COUNT, sum_of, end->size, COUNT * (size_t)end->rank);
        check_values(arrived[k], SLUICE_INT64, COUNT, value_of, left, 9);
        CHECK(cudaFree(whole[k]) == cudaSuccess);
    }
    CHECK(cudaFree(message) == cudaSuccess);
}

static void a_group_takes_many_calls(void **state)
{
    (void)state;
    ends_run(2, one_large_group, NULL);
    ends_run(3, one_large_group, NULL);
}

static void refused(sluice_status status, sluice_status wanted, const char *words)
{
    CHECK(status == wanted);
    CHECK(strstr(last_error(), words));
}

static void wrong_calls(rank_end *end)
{
    const sluice_transport_collectives_v2 *c = end->collectives;
    const int other = 1 - end->rank;
    void *memory = make_values(SLUICE_FP32, end->rank, 0, 32), *self = end->self;
    refused(c->all_reduce(self, memory, memory, 1, SLUICE_FP32), SLUICE_ERR_ORDER, "all_reduce: outside of a group");
    refused(c->group_end(self), SLUICE_ERR_ORDER, "no group has begun");
    begin(end);
    CHECK(c->group_end(self) == SLUICE_OK); /* an empty one */
    CHECK(c->launched(self) == SLUICE_OK);

    begin(end);
    refused(c->group_begin(self), SLUICE_ERR_ORDER, "has not ended");
    CHECK(c->all_reduce(self, memory, memory, 32, SLUICE_FP32) == SLUICE_OK);
    refused(c->send(self, end->rank, memory, 1, SLUICE_FP32), SLUICE_ERR_ARGUMENT, "send: a message to the own rank");
    refused(c->group_end(self), SLUICE_ERR_ARGUMENT, "send: a message to the own rank");
    CHECK(c->launched(self) == SLUICE_OK); /* nothing was, and the other ranks wait for nothing */

    static const char *const words[] = {"a count of 0", "no such rank", "no such rank",
                                        "sums are of",  "no such type", "a buffer is NULL"};
    for (int wrong = 0; wrong < 6; wrong++) {
        begin(end);
        sluice_status status = wrong == 0   ? c->broadcast(self, memory, 0, SLUICE_FP32, 0)
                               : wrong == 1 ? c->broadcast(self, memory, 1, SLUICE_FP32, 2)
                               : wrong == 2 ? c->receive(self, -1, memory, 1, SLUICE_FP32)
                               : wrong == 3 ? c->reduce_scatter(self, memory, memory, 1, SLUICE_UINT8)
                               : wrong == 4 ? c->all_gather(self, memory, memory, 1, (sluice_dtype)77)
                                            : c->send(self, other, NULL, 1, SLUICE_FP32);
        refused(status, SLUICE_ERR_ARGUMENT, words[wrong]);
        refused(c->group_end(self), SLUICE_ERR_ARGUMENT, words[wrong]);
    }
    CHECK(cudaFree(memory) == cudaSuccess);
    sum_everywhere(end, SLUICE_FP32, 777, false); /* all goes on after a refusal */
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    ends_run(2, wrong_calls, NULL);
}

/* ---- Launches that come late ---- */

/* Rank 1 comes late, and NCCL launches late. Work that is put behind the group after `launched` has said SLUICE_OK sees
 * the sum. */
static void behind_a_late_launch(rank_end *end)
{
    enum { ROUNDS = 12, COUNT = 1000 };
    int waited = 0;
    cudaEvent_t event;
    cudaStream_t reader;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
    CHECK(cudaStreamCreateWithFlags(&reader, cudaStreamNonBlocking) == cudaSuccess);
    for (int k = 0; k < ROUNDS; k++) {
        int64_t *memory = make_values(SLUICE_INT64, end->rank, (size_t)k, COUNT);
        void *seen = make_values(SLUICE_INT64, -1, 0, COUNT);
        if (end->rank == 1) sleep_ms(k % 3);
        begin(end);
        CHECK(end->collectives->all_reduce(end->self, memory, memory, COUNT, SLUICE_INT64) == SLUICE_OK);
        sluice_status status = end->collectives->group_end(end->self);
        if (status == SLUICE_IN_PROGRESS && end->collectives->launched(end->self) == SLUICE_IN_PROGRESS) {
            waited++;
            CHECK(end->base->timer(end->self) != UINT64_MAX); /* the caller must not sleep until something wakes it */
            refused(end->collectives->group_begin(end->self), SLUICE_ERR_ORDER, "is not launched yet");
        }
        CHECK(end_await(end, status) == SLUICE_OK);
        CHECK(cudaEventRecord(event, end->stream) == cudaSuccess);
        CHECK(cudaStreamWaitEvent(reader, event, 0) == cudaSuccess);
        CHECK(cudaMemcpyAsync(seen, memory, COUNT * sizeof *memory, cudaMemcpyDeviceToDevice, reader) == cudaSuccess);
        CHECK(cudaStreamSynchronize(reader) == cudaSuccess);
        check_values(seen, SLUICE_INT64, COUNT, sum_of, end->size, (size_t)k);
        CHECK(cudaFree(memory) == cudaSuccess);
    }
    CHECK(waited > 0); /* or this has tested nothing */
    CHECK(cudaStreamDestroy(reader) == cudaSuccess && cudaEventDestroy(event) == cudaSuccess);
}

static void what_follows_a_launch_sees_the_sum(void **state)
{
    (void)state;
    setenv("HOSTNCCL_LAUNCH_DELAY", "20000", 1);
    for (int size = 2; size <= WORLD_MOST; size++) ends_run(size, behind_a_late_launch, NULL);
    unsetenv("HOSTNCCL_LAUNCH_DELAY");
}

/* ---- Streams ---- */

/* A re-plan attaches another arena with another stream; the communicator stays. */
static void other_streams(rank_end *end)
{
    for (int k = 0; k < 3; k++) {
        sum_everywhere(end, SLUICE_FP32, 777, false);
        end_detach(end);
        refused(end->collectives->group_begin(end->self), SLUICE_ERR_ORDER, "attach a stream first");
        CHECK(end->collectives->health(end->self) == SLUICE_OK);
        end_attach(end);
    }
}

static void streams_may_change(void **state)
{
    (void)state;
    ends_run(3, other_streams, NULL);
}

/* ---- Aborts ---- */

static void check_aborted(rank_end *end)
{
    const sluice_transport_collectives_v2 *c = end->collectives;
    refused(c->group_begin(end->self), SLUICE_ERR_INTERRUPTED, "were aborted");
    refused(c->launched(end->self), SLUICE_ERR_INTERRUPTED, "were aborted");
    refused(c->health(end->self), SLUICE_ERR_INTERRUPTED, "were aborted");
    c->abort(end->self); /* once more */
}

/* Puts an operation into the stream for which the other ranks never come. */
static void begin_in_vain(rank_end *end, float *memory)
{
    begin(end);
    CHECK(end->collectives->all_reduce(end->self, memory, memory, 1000, SLUICE_FP32) == SLUICE_OK);
    CHECK(end_await(end, end->collectives->group_end(end->self)) == SLUICE_OK);
    sleep_ms(20);
    CHECK(cudaStreamQuery(end->stream) == cudaErrorNotReady);
    CHECK(end->collectives->health(end->self) == SLUICE_OK);
}

static void *abort_soon(void *argument)
{
    const rank_end *end = argument;
    sleep_ms(50);
    end->collectives->abort(end->self);
    return NULL;
}

static void wait_in_vain(rank_end *end)
{
    pthread_t thread;
    if (end->rank) return;
    float *memory = make_values(SLUICE_FP32, end->rank, 0, 1000);
    begin_in_vain(end, memory);
    CHECK(pthread_create(&thread, NULL, abort_soon, end) == 0);
    CHECK(cudaStreamSynchronize(end->stream) == cudaSuccess); /* the abort ends it */
    pthread_join(thread, NULL);
    check_aborted(end);
    CHECK(cudaFree(memory) == cudaSuccess);
}

static void an_abort_ends_what_waits_in_the_stream(void **state)
{
    (void)state;
    ends_run(2, wait_in_vain, NULL);
    ends_run(4, wait_in_vain, NULL);
}

/* The abort comes while NCCL's thread has not launched the group yet. */
static void abort_before_launch(rank_end *end)
{
    float *memory = make_values(SLUICE_FP32, end->rank, 0, 1000);
    begin(end);
    CHECK(end->collectives->all_reduce(end->self, memory, memory, 1000, SLUICE_FP32) == SLUICE_OK);
    sluice_status status = end->collectives->group_end(end->self);
    if (end->rank == 0) {
        end->collectives->abort(end->self);
        CHECK(end_await(end, status) == SLUICE_ERR_INTERRUPTED);
    } else {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, abort_soon, end) == 0);
        status = end_await(end, status);
        CHECK(status == SLUICE_OK || status == SLUICE_ERR_INTERRUPTED);
        pthread_join(thread, NULL);
    }
    CHECK(cudaStreamSynchronize(end->stream) == cudaSuccess);
    check_aborted(end);
    CHECK(cudaFree(memory) == cudaSuccess);
}

static void an_abort_may_come_before_the_launch(void **state)
{
    (void)state;
    setenv("HOSTNCCL_LAUNCH_DELAY", "100000", 1);
    ends_run(2, abort_before_launch, NULL);
    unsetenv("HOSTNCCL_LAUNCH_DELAY");
}

/* Rank 1 never comes. */
static void an_abort_ends_an_attach(void **state)
{
    (void)state;
    rank_end ends[2];
    pthread_t thread;
    cudaStream_t stream;
    ends_open(ends, 2);
    CHECK(cudaSetDevice(0) == cudaSuccess);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(pthread_create(&thread, NULL, abort_soon, &ends[0]) == 0);
    refused(ends[0].collectives->attach(ends[0].self, stream), SLUICE_ERR_INTERRUPTED, "attach: ");
    pthread_join(thread, NULL);
    CHECK(ends[0].collectives->attach(ends[0].self, NULL) == SLUICE_OK);
    check_aborted(&ends[0]);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    ends_close(ends, 2);
}

static void close_what_waits(rank_end *end)
{
    if (end->rank) return;
    float *memory = make_values(SLUICE_FP32, end->rank, 0, 1000);
    begin_in_vain(end, memory);
    end->base->close(end->self, 50000000u);
    end->self = NULL;
    CHECK(cudaStreamSynchronize(end->stream) == cudaSuccess);
    CHECK(cudaFree(memory) == cudaSuccess);
}

static void a_close_waits_no_longer_than_it_may(void **state)
{
    (void)state;
    ends_run(2, close_what_waits, NULL);
}

/* ---- Ranks as processes, of which one is killed ---- */

static void lose_rank_1(rank_end *end)
{
    CHECK(cudaSetDevice(0) == cudaSuccess);
    end_attach(end);
    sum_everywhere(end, SLUICE_FP32, 777, true);
    if (end->rank == 1) raise(SIGKILL);
    float *memory = make_values(SLUICE_FP32, end->rank, 0, 1000);
    begin_in_vain(end, memory);
    const double begin_ms = clock_ms();
    if (end->rank == 2) /* it notices nothing itself, and is closed all the same */
        end->base->close(end->self, 100000000u);
    else
        end->collectives->abort(end->self);
    CHECK(cudaStreamSynchronize(end->stream) == cudaSuccess);
    if (end->rank != 2) {
        check_aborted(end);
        end_detach(end);
        end->base->close(end->self, 0);
    }
    CHECK(cudaFree(memory) == cudaSuccess);
    fprintf(stderr, "rank %d was free %.0f ms after it had given up\n", end->rank, clock_ms() - begin_ms);
}

static void survivors_of_a_killed_rank_end(void **state)
{
    (void)state;
    for (int size = 2; size <= WORLD_MOST; size++) {
        rank_end own;
        int pids[RANKS_MOST], status;
        ends_start(&own, size, lose_rank_1, pids);
        lose_rank_1(&own);
        for (int r = 1; r < size; r++) {
            CHECK(waitpid(pids[r], &status, 0) == pids[r]);
            CHECK(r == 1 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0);
        }
    }
}

/* ---- Errors of making a world ---- */

static void *attach_to_device_0(void *argument)
{
    const rank_end *end = argument;
    cudaStream_t stream;
    CHECK(cudaSetDevice(0) == cudaSuccess);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    refused(end->collectives->attach(end->self, stream), SLUICE_ERR_UNSUPPORTED, "two ranks use one GPU");
    CHECK(strstr(last_error(), "here LOCAL_RANK=5") && strstr(last_error(), "SLUICE_CUDA_DEVICE"));
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    return NULL;
}

static void two_ranks_on_one_gpu_are_refused(void **state)
{
    (void)state;
    rank_end ends[2];
    pthread_t threads[2];
    setenv("LOCAL_RANK", "5", 1);
    ends_open(ends, 2);
    for (int r = 0; r < 2; r++) CHECK(pthread_create(&threads[r], NULL, attach_to_device_0, &ends[r]) == 0);
    for (int r = 0; r < 2; r++) pthread_join(threads[r], NULL);
    ends_close(ends, 2);
    unsetenv("LOCAL_RANK");
}

static void addresses_are_looked_at(void **state)
{
    (void)state;
    rank_end end;
    const void *blob;
    size_t bytes;
    unsigned char other[1024];
    CHECK(end_open(&end, 1, 2, NULL) == SLUICE_OK);
    CHECK(strcmp(end.base->describe(end.self), "nccl 2.28.9") == 0);
    CHECK(end.base->address(end.self, &blob, &bytes) == SLUICE_OK && bytes <= sizeof other);
    memcpy(other, blob, bytes);
    refused(end.collectives->attach(end.self, &end), SLUICE_ERR_ORDER, "connect rank 0 first");
    refused(end.base->connect(end.self, 0, blob, bytes - 1), SLUICE_ERR_FORMAT, "rank 0 sent no address");
    other[0] ^= 1;
    refused(end.base->connect(end.self, 0, other, bytes), SLUICE_ERR_FORMAT, "rank 0 sent no address");
    other[0] ^= 1;
    int32_t version = 22105;
    memcpy(other + 8, &version, sizeof version);
    refused(end.base->connect(end.self, 0, other, bytes), SLUICE_ERR_MISMATCH,
            "rank 0 has NCCL 2.21.5, this rank 2.28.9");
    setenv("NCCL_COMM_BLOCKING", "1", 1);
    CHECK(end.base->connect(end.self, 0, blob, bytes) == SLUICE_OK);
    refused(end.collectives->attach(end.self, &end), SLUICE_ERR_ARGUMENT, "NCCL_COMM_BLOCKING=1");
    unsetenv("NCCL_COMM_BLOCKING");
    end.base->close(end.self, 0);
}

int main(int argc, char **argv)
{
    static rank_body *const bodies[] = {lose_rank_1, NULL};
    ends_enter(argc, argv, bodies);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_give_what_they_say),
        cmocka_unit_test(a_group_takes_many_calls),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(what_follows_a_launch_sees_the_sum),
        cmocka_unit_test(streams_may_change),
        cmocka_unit_test(an_abort_ends_what_waits_in_the_stream),
        cmocka_unit_test(an_abort_may_come_before_the_launch),
        cmocka_unit_test(an_abort_ends_an_attach),
        cmocka_unit_test(a_close_waits_no_longer_than_it_may),
        cmocka_unit_test(survivors_of_a_killed_rank_end),
        cmocka_unit_test(two_ranks_on_one_gpu_are_refused),
        cmocka_unit_test(addresses_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
