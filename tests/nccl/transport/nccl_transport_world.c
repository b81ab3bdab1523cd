/* A world of our own over the transport nccl, in processes, for tests that look at it from outside, as the NCCL shim
 * does: what lib/comm makes of the collectives, again and again. Each rank prints a sum of all results, and how many
 * operations of NCCL it called. `nccl_transport_world -n RANKS`. */
#include "tests/nccl/transport/rank_end.h"

#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

enum { ROUNDS = 25, PART = 1000 };

static int64_t sum_of(const int64_t *values, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += values[i];
    return sum;
}

/* The contributions to each part go to its owner, who adds them; then the parts are gathered. */
static int all_reduce_in_order(rank_end *end, int64_t *whole, int64_t *arrived, int64_t *host)
{
    const sluice_transport_collectives_v2 *c = end->collectives;
    int64_t sums[PART] = {0};
    CHECK(c->group_begin(end->self) == SLUICE_OK);
    for (int peer = 0; peer < end->size; peer++) {
        if (peer == end->rank) continue;
        CHECK(c->send(end->self, peer, whole + peer * PART, PART, SLUICE_INT64) == SLUICE_OK);
        CHECK(c->receive(end->self, peer, arrived + peer * PART, PART, SLUICE_INT64) == SLUICE_OK);
    }
    end_group(end);
    device_move(arrived + end->rank * PART, whole + end->rank * PART, PART * sizeof *whole);
    device_read(host, arrived, (size_t)end->size * PART * sizeof *host);
    for (int rank = 0; rank < end->size; rank++)
        for (int i = 0; i < PART; i++) sums[i] += host[rank * PART + i];
    CHECK(cudaMemcpy(whole + end->rank * PART, sums, sizeof sums, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(c->group_begin(end->self) == SLUICE_OK);
    CHECK(c->all_gather(end->self, whole + end->rank * PART, whole, PART, SLUICE_INT64) == SLUICE_OK);
    end_group(end);
    return 2 * (end->size - 1) + 1;
}

/* One group of calls, as an operation on several blocks is. */
static int collectives_of_nccl(rank_end *end, int64_t *whole, int64_t *part)
{
    const sluice_transport_collectives_v2 *c = end->collectives;
    CHECK(c->group_begin(end->self) == SLUICE_OK);
    CHECK(c->reduce_scatter(end->self, whole, part, PART, SLUICE_INT64) == SLUICE_OK);
    CHECK(c->broadcast(end->self, whole, PART, SLUICE_INT64, end->size - 1) == SLUICE_OK);
    end_group(end);
    CHECK(c->group_begin(end->self) == SLUICE_OK);
    CHECK(c->all_reduce(end->self, part, part, PART, SLUICE_INT64) == SLUICE_OK);
    end_group(end);
    return 3;
}

static void work(rank_end *end)
{
    const size_t count = (size_t)end->size * PART, bytes = count * sizeof(int64_t);
    int64_t *host = malloc(bytes), total = 0;
    int calls = 0;
    CHECK(host);
    CHECK(cudaSetDevice(0) == cudaSuccess);
    end_attach(end);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < count; i++) host[i] = (int64_t)i % 1000 * (end->rank + 1) + round;
        int64_t *whole = device_copy(host, bytes), *room = device_copy(host, bytes);
        calls += all_reduce_in_order(end, whole, room, host);
        calls += collectives_of_nccl(end, whole, room);
        device_read(host, whole, bytes);
        total += sum_of(host, count);
        device_read(host, room, PART * sizeof *host);
        total += sum_of(host, PART);
        CHECK(cudaFree(whole) == cudaSuccess && cudaFree(room) == cudaSuccess);
    }
    end_detach(end);
    end->base->close(end->self, 1000000000u);
    printf("rank %d: %lld\ncalls %d\n", end->rank, (long long)total, calls);
    fflush(stdout);
    free(host);
}

int main(int argc, char **argv)
{
    static rank_body *const bodies[] = {work, NULL};
    ends_enter(argc, argv, bodies);
    rank_end own;
    int pids[RANKS_MOST], status;
    const int size = argc == 3 && strcmp(argv[1], "-n") == 0 ? atoi(argv[2]) : 2;
    if (size < 2 || size > RANKS_MOST) return 2;
    ends_start(&own, size, work, pids);
    work(&own);
    for (int rank = 1; rank < size; rank++) CHECK(waitpid(pids[rank], &status, 0) == pids[rank] && status == 0);
    return 0;
}
