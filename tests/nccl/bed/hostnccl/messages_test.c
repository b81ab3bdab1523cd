/* Sends and receives in the patterns that programs use; each message says who sent it, to whom and which it was. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/nccl/bed/hostnccl/support/ranks.h"
#include <string.h>

static uint32_t word_of(int from, int to, int number, size_t i)
{
    return (uint32_t)from << 28 | (uint32_t)to << 24 | (uint32_t)(number & 0xff) << 16 | (uint32_t)(i & 0xffff);
}

static uint32_t *message(int from, int to, int number, size_t count)
{
    uint32_t *words = malloc(count * sizeof *words + 1);
    CHECK(words);
    for (size_t i = 0; i < count; i++) words[i] = word_of(from, to, number, i);
    uint32_t *memory = device_copy(words, count * sizeof *words);
    free(words);
    return memory;
}

static uint32_t *room(size_t count)
{
    uint32_t *memory = message(15, 15, 0, count);
    return memory;
}

/* Checks what was received and frees it. */
static void check_message(uint32_t *memory, int from, int to, int number, size_t count)
{
    uint32_t *words = malloc(count * sizeof *words + 1);
    CHECK(words);
    device_read(words, memory, count * sizeof *words);
    for (size_t i = 0; i < count; i++) CHECK(words[i] == word_of(from, to, number, i));
    free(words);
    cudaFree(memory);
}

static void send(test_rank *r, const void *from, size_t count, int peer)
{
    CHECK(ncclSend(from, count, ncclUint32, peer, r->comm, r->stream) == ncclSuccess);
}

static void receive(test_rank *r, void *to, size_t count, int peer)
{
    CHECK(ncclRecv(to, count, ncclUint32, peer, r->comm, r->stream) == ncclSuccess);
}

static void synchronize(test_rank *r)
{
    CHECK(cudaStreamSynchronize(r->stream) == cudaSuccess);
}

/* Every rank sends to its right and receives from its left; sizes from nothing to many pieces. */
static void around_the_ring(test_rank *r)
{
    static const size_t counts[] = {0, 1, 777, 65536, 600001};
    int right = (r->rank + 1) % r->size, left = (r->rank + r->size - 1) % r->size;
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        uint32_t *out = message(r->rank, right, (int)n, counts[n]), *in = room(counts[n]);
        CHECK(ncclGroupStart() == ncclSuccess);
        send(r, out, counts[n], right);
        receive(r, in, counts[n], left);
        CHECK(ncclGroupEnd() == ncclSuccess);
        synchronize(r);
        check_message(in, left, r->rank, (int)n, counts[n]);
        cudaFree(out);
    }
}

/* Every pair, several messages each way, to itself too; receives are called in another order than sends. */
static void everybody_to_everybody(test_rank *r)
{
    enum { MESSAGES = 3, MOST = 4 * MESSAGES };
    uint32_t *in[MOST], *out[MOST];
    CHECK(ncclGroupStart() == ncclSuccess);
    for (int peer = r->size - 1; peer >= 0; peer--)
        for (int m = 0; m < MESSAGES; m++) {
            size_t count = (size_t)(1000 * (m + 1) + peer * 100000);
            out[peer * MESSAGES + m] = message(r->rank, peer, m, count);
            send(r, out[peer * MESSAGES + m], count, peer);
        }
    for (int peer = 0; peer < r->size; peer++)
        for (int m = 0; m < MESSAGES; m++) {
            size_t count = (size_t)(1000 * (m + 1) + r->rank * 100000);
            in[peer * MESSAGES + m] = room(count);
            receive(r, in[peer * MESSAGES + m], count, peer);
        }
    CHECK(ncclGroupEnd() == ncclSuccess);
    synchronize(r);
    for (int peer = 0; peer < r->size; peer++)
        for (int m = 0; m < MESSAGES; m++) {
            check_message(in[peer * MESSAGES + m], peer, r->rank, m, (size_t)(1000 * (m + 1) + r->rank * 100000));
            cudaFree(out[peer * MESSAGES + m]);
        }
}

/* A pipeline passes messages on without groups, with collectives in between. */
static void down_the_pipeline(test_rank *r)
{
    enum { COUNT = 5000, MESSAGES = 20 };
    uint32_t *buffer = message(0, 0, 0, COUNT), sum = 1, *total = device_copy(&sum, sizeof sum);
    for (int m = 0; m < MESSAGES; m++) {
        if (r->rank > 0) receive(r, buffer, COUNT, r->rank - 1);
        if (r->rank + 1 < r->size) send(r, buffer, COUNT, r->rank + 1);
        if (m % 5 == 4) CHECK(ncclAllReduce(total, total, 1, ncclUint32, ncclSum, r->comm, r->stream) == ncclSuccess);
    }
    synchronize(r);
    check_message(buffer, 0, 0, 0, COUNT);
    device_read(&sum, total, sizeof sum);
    CHECK(sum == (uint32_t)(r->size * r->size * r->size * r->size));
    cudaFree(total);
}

/* A group may hold both; the collectives come first. */
static void with_collectives_in_a_group(test_rank *r)
{
    uint32_t one = 1, *total = device_copy(&one, sizeof one), *out = message(r->rank, 0, 0, 100), *in = room(100);
    CHECK(ncclGroupStart() == ncclSuccess);
    if (r->rank == 0)
        for (int peer = 1; peer < r->size; peer++) receive(r, in, 100, peer);
    else
        send(r, out, 100, 0);
    CHECK(ncclAllReduce(total, total, 1, ncclUint32, ncclSum, r->comm, r->stream) == ncclSuccess);
    CHECK(ncclGroupEnd() == ncclSuccess);
    synchronize(r);
    device_read(&one, total, sizeof one);
    CHECK(one == (uint32_t)r->size);
    cudaFree(total);
    cudaFree(out);
    cudaFree(in);
}

static void threads(void **state)
{
    (void)state;
    for (int size = 1; size <= 4; size++) {
        ranks_run_threads(size, around_the_ring, NULL);
        ranks_run_threads(size, everybody_to_everybody, NULL);
        ranks_run_threads(size, down_the_pipeline, NULL);
        ranks_run_threads(size, with_collectives_in_a_group, NULL);
    }
}

static void processes(void **state)
{
    (void)state;
    ranks_run_processes(2, around_the_ring);
    ranks_run_processes(3, everybody_to_everybody);
}

/* A send that nobody receives hangs, whatever its size; and so does one of another size than its receive. */
static void unmatched(test_rank *r)
{
    size_t counts[2] = {8, r->argument ? 8 : 16};
    uint32_t *memory = message(0, 1, 0, 16);
    if (r->rank == 0)
        send(r, memory, counts[0], 1);
    else if (!r->argument)
        receive(r, memory, counts[1], 0);
    if (r->rank == 0 || !r->argument) {
        sleep_ms(100);
        CHECK(cudaStreamQuery(r->stream) == cudaErrorNotReady);
        CHECK(ncclCommAbort(r->comm) == ncclSuccess);
        r->comm = NULL;
        synchronize(r);
    }
    cudaFree(memory);
}

static void corrupted(test_rank *r)
{
    uint32_t *memory = message(r->rank, 1, 0, 16);
    if (r->rank == 0)
        send(r, memory, 8, 1);
    else
        receive(r, memory, 16, 0);
    synchronize(r);
    if (r->rank == 1)
        check_message(memory, 0, 1, 0, 8);
    else
        cudaFree(memory);
    down_the_pipeline(r);
}

static void unequal_messages_hang_or_corrupt(void **state)
{
    (void)state;
    ranks_run_threads(2, unmatched, "a send alone");
    ranks_run_threads(2, unmatched, NULL);
    setenv("HOSTNCCL_MISMATCH", "corrupt", 1);
    ranks_run_threads(2, corrupted, NULL);
    unsetenv("HOSTNCCL_MISMATCH");
}

/* The link's time is at least what HOSTNCCL_LATENCY and HOSTNCCL_BANDWIDTH say. */
static void charged(test_rank *r)
{
    enum { COUNT = 250000, REPEATS = 5 };
    uint32_t *memory = message(0, 0, 0, COUNT);
    double begin = clock_ms();
    for (int i = 0; i < REPEATS; i++) {
        if (r->rank == 0)
            send(r, memory, COUNT, 1);
        else
            receive(r, memory, COUNT, 0);
    }
    synchronize(r);
    CHECK(clock_ms() - begin >= REPEATS * (1 + COUNT * 4 / 100e6 * 1e3));
    cudaFree(memory);
}

static void links_take_their_time(void **state)
{
    (void)state;
    setenv("HOSTNCCL_LATENCY", "1000", 1);
    setenv("HOSTNCCL_BANDWIDTH", "1e8", 1);
    ranks_run_threads(2, charged, NULL);
    unsetenv("HOSTNCCL_LATENCY");
    unsetenv("HOSTNCCL_BANDWIDTH");
}

int main(int argc, char **argv)
{
    ranks_enter(argc, argv, (rank_body *[]){around_the_ring, everybody_to_everybody, NULL});
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads),
        cmocka_unit_test(processes),
        cmocka_unit_test(unequal_messages_hang_or_corrupt),
        cmocka_unit_test(links_take_their_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
