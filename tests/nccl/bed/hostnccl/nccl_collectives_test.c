/* Every collective of every type and operator against an oracle in double; values are small whole numbers, so only the
 * 8 bit floats round. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/nccl/bed/hostnccl/arithmetic.h"
#include "tests/nccl/bed/hostnccl/support/ranks.h"
#include <math.h>
#include <string.h>

enum { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, REDUCE, BROADCAST, BCAST, ALL_TO_ALL, GATHER, SCATTER, KINDS };

typedef struct {
    int kind;
    size_t count;
    ncclDataType_t type;
    int op; /* ncclNumOps: premultiplied by 2 on even ranks, 3 on odd ones; ncclNumOps + 1: by a scalar on the device */
    int root;
    bool in_place;
} call;

/* ---- Small floats ---- */

/* Returns the code whose value is nearest, by looking at all codes; of two that are as near, the even one. */
static unsigned nearest_code(ncclDataType_t type, unsigned codes, double value)
{
    unsigned best = 0;
    double distance = INFINITY;
    for (unsigned code = 0; code < codes; code++) {
        float candidate = hostnccl_small_decode(type, code);
        if (!isfinite(candidate) || !signbit(candidate) != !signbit(value)) continue;
        double d = fabs((double)candidate - value);
        if (d < distance || (d == distance && code % 2 == 0)) {
            best = code;
            distance = d;
        }
    }
    return best;
}

static void small_floats_round_to_the_nearest(void **state)
{
    (void)state;
    static const struct {
        ncclDataType_t type;
        unsigned codes;
        double largest;
    } types[] = {{ncclFloat8e4m3, 256, 448}, {ncclFloat8e5m2, 256, 57344}, {ncclFloat16, 65536, 65504}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        unsigned step = types[t].codes == 256 ? 1 : 257;
        for (unsigned code = 0; code < types[t].codes; code += step) {
            float value = hostnccl_small_decode(types[t].type, code);
            if (!isfinite(value)) continue;
            CHECK(hostnccl_small_encode(types[t].type, value) == code);
            float next = hostnccl_small_decode(types[t].type, code + 1 < types[t].codes ? code + 1 : code);
            if (!isfinite(next) || !signbit(next) != !signbit(value)) continue;
            for (int part = 1; part < 8; part++) {
                float between = value + (next - value) * (float)part / 8;
                unsigned got = hostnccl_small_encode(types[t].type, between);
                unsigned want = nearest_code(types[t].type, types[t].codes, between);
                if (got != want)
                    fprintf(stderr, "type %d: %a becomes %#x, not %#x\n", (int)types[t].type, between, got, want);
                CHECK(got == want);
            }
        }
        unsigned beyond = hostnccl_small_encode(types[t].type, 1e30f);
        if (types[t].type == ncclFloat16)
            CHECK(isinf(hostnccl_small_decode(types[t].type, beyond)));
        else
            CHECK(hostnccl_small_decode(types[t].type, beyond) == (float)types[t].largest);
        CHECK(isnan(hostnccl_small_decode(types[t].type, hostnccl_small_encode(types[t].type, NAN))));
    }
    CHECK(hostnccl_small_decode(ncclFloat8e4m3, 0x38) == 1 && hostnccl_small_decode(ncclFloat8e4m3, 0x01) == 0x1p-9f);
    CHECK(hostnccl_small_decode(ncclFloat8e5m2, 0x3c) == 1 && hostnccl_small_decode(ncclFloat16, 0xc000) == -2);
    CHECK(hostnccl_small_decode(ncclBfloat16, 0x3f80) == 1 && hostnccl_small_encode(ncclBfloat16, -2) == 0xc000);
}

/* ---- The oracle ---- */

static void set_value(ncclDataType_t type, void *at, size_t i, double value)
{
    switch (type) {
    case ncclInt8: ((int8_t *)at)[i] = (int8_t)value; break;
    case ncclUint8: ((uint8_t *)at)[i] = (uint8_t)value; break;
    case ncclInt32: ((int32_t *)at)[i] = (int32_t)value; break;
    case ncclUint32: ((uint32_t *)at)[i] = (uint32_t)value; break;
    case ncclInt64: ((int64_t *)at)[i] = (int64_t)value; break;
    case ncclUint64: ((uint64_t *)at)[i] = (uint64_t)value; break;
    case ncclFloat32: ((float *)at)[i] = (float)value; break;
    case ncclFloat64: ((double *)at)[i] = value; break;
    case ncclFloat16:
    case ncclBfloat16: ((uint16_t *)at)[i] = (uint16_t)hostnccl_small_encode(type, (float)value); break;
    default: ((uint8_t *)at)[i] = (uint8_t)hostnccl_small_encode(type, (float)value);
    }
}

/* Returns a value as it is after it was stored in the type. */
static double kept(ncclDataType_t type, double value)
{
    if (type == ncclFloat32) return (float)value;
    if (type == ncclFloat64 || !hostnccl_type_is_float(type)) return value;
    return hostnccl_small_decode(type, hostnccl_small_encode(type, (float)value));
}

/* Returns the value that a rank gives at this place: 1, 2 or 3. */
static double given(int rank, size_t i)
{
    return (double)(1 + (i * 7 + (size_t)rank * 5 + i / 11) % 3);
}

static double scalar_of(int rank)
{
    return rank % 2 ? 3 : 2;
}

/* The results of averages alone are no whole numbers, so they alone depend on the order in which ranks are added. */
static bool order_shows(const call *c)
{
    return c->op == ncclAvg && hostnccl_type_is_float(c->type);
}

enum { MOST_RANKS = 4 };

/* Gives the permutation with this number of the ranks; false if there are fewer. */
static bool make_order(int size, int number, int order[MOST_RANKS])
{
    for (int rank = 0; rank < size; rank++) {
        int place = rank - number % (rank + 1);
        number /= rank + 1;
        memmove(order + place + 1, order + place, (size_t)(rank - place) * sizeof *order);
        order[place] = rank;
    }
    return number == 0;
}

static double reduced(const call *c, int size, size_t i, const int order[MOST_RANKS])
{
    double sum = 0;
    for (int n = 0; n < size; n++) {
        const int rank = order[n];
        double value = given(rank, i);
        if (c->op >= ncclNumOps) value = kept(c->type, value * scalar_of(rank));
        if (c->op == ncclAvg && c->type == ncclFloat64)
            value *= 1.0 / size;
        else if (c->op == ncclAvg && hostnccl_type_is_float(c->type))
            value = kept(c->type, (float)value * (1.0f / (float)size));
        if (n == 0)
            sum = value;
        else if (c->op == ncclProd)
            sum *= value;
        else if (c->op == ncclMax)
            sum = fmax(sum, value);
        else if (c->op == ncclMin)
            sum = fmin(sum, value);
        else if (c->type == ncclFloat64)
            sum += value;
        else
            sum = (float)sum + (float)value;
    }
    if (c->op == ncclAvg && !hostnccl_type_is_float(c->type)) sum = floor(sum / size);
    return sum;
}

/* *value becomes what must lie at place i of the receive buffer. False: the place must stay as it was. */
static bool expected(const call *c, const test_rank *r, size_t i, const int order[MOST_RANKS], double *value)
{
    size_t block = i / c->count, at = i % c->count;
    switch (c->kind) {
    case ALL_REDUCE: *value = reduced(c, r->size, i, order); return true;
    case REDUCE: *value = reduced(c, r->size, i, order); return r->rank == c->root;
    case REDUCE_SCATTER: *value = reduced(c, r->size, (size_t)r->rank * c->count + i, order); return true;
    case ALL_GATHER: *value = given((int)block, at); return true;
    case GATHER: *value = given((int)block, at); return r->rank == c->root;
    case ALL_TO_ALL: *value = given((int)block, (size_t)r->rank * c->count + at); return true;
    case SCATTER: *value = given(c->root, (size_t)r->rank * c->count + i); return true;
    default: *value = given(c->root, i); return true;
    }
}

static ncclResult_t issue(const call *c, const test_rank *r, const void *send, void *receive, ncclRedOp_t op)
{
    switch (c->kind) {
    case ALL_REDUCE: return ncclAllReduce(send, receive, c->count, c->type, op, r->comm, r->stream);
    case REDUCE_SCATTER: return ncclReduceScatter(send, receive, c->count, c->type, op, r->comm, r->stream);
    case ALL_GATHER: return ncclAllGather(send, receive, c->count, c->type, r->comm, r->stream);
    case REDUCE: return ncclReduce(send, receive, c->count, c->type, op, c->root, r->comm, r->stream);
    case BROADCAST: return ncclBroadcast(send, receive, c->count, c->type, c->root, r->comm, r->stream);
    case BCAST: return ncclBcast(receive, c->count, c->type, c->root, r->comm, r->stream);
    case ALL_TO_ALL: return ncclAlltoAll(send, receive, c->count, c->type, r->comm, r->stream);
    case GATHER: return ncclGather(send, receive, c->count, c->type, c->root, r->comm, r->stream);
    default: return ncclScatter(send, receive, c->count, c->type, c->root, r->comm, r->stream);
    }
}

/* Returns the place in the receive buffer at which the send buffer begins if the call is in place; -1: the receive
 * buffer lies in the send buffer instead. */
static ptrdiff_t place_of_send(const call *c, const test_rank *r)
{
    bool root = r->rank == c->root;
    switch (c->kind) {
    case ALL_GATHER: return (ptrdiff_t)(c->count * (size_t)r->rank);
    case GATHER: return root ? (ptrdiff_t)(c->count * (size_t)r->rank) : 0;
    case REDUCE_SCATTER: return -1;
    case SCATTER: return root ? -1 : 0;
    default: return 0;
    }
}

static ncclRedOp_t make_redop(const call *c, const test_rank *r, void **device_scalar)
{
    uint64_t scalar;
    ncclRedOp_t op = (ncclRedOp_t)c->op;
    *device_scalar = NULL;
    if (c->op < ncclNumOps) return op;
    set_value(c->type, &scalar, 0, scalar_of(r->rank));
    if (c->op > ncclNumOps) *device_scalar = device_copy(&scalar, sizeof scalar);
    CHECK(ncclRedOpCreatePreMulSum(&op, *device_scalar ? *device_scalar : &scalar, c->type,
                                   *device_scalar ? ncclScalarDevice : ncclScalarHostImmediate,
                                   r->comm) == ncclSuccess);
    CHECK(op >= ncclNumOps);
    return op;
}

static void fill(ncclDataType_t type, char *memory, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++) set_value(type, memory, i, given(rank, i));
}

/* Sets place i of `host` to what must lie there. If the order of sums shows, any sum in one of the orders is right: the
 * number that lies there stays if it is one. */
static void expect(const call *c, const test_rank *r, size_t i, char *host, const char *after)
{
    int order[MOST_RANKS];
    double value;
    size_t width = hostnccl_type_bytes(c->type);
    for (int number = 0; make_order(r->size, number, order) && expected(c, r, i, order, &value); number++) {
        set_value(c->type, host, i, value);
        if (!order_shows(c) || !memcmp(host + i * width, after + i * width, width)) return;
    }
}

static void check_call(test_rank *r, const call *c)
{
    size_t width = hostnccl_type_bytes(c->type), most = c->count * (size_t)r->size, bytes = most * width;
    bool scatters = c->kind == REDUCE_SCATTER || c->kind == SCATTER,
         gathers = c->kind == ALL_GATHER || c->kind == GATHER;
    char *host = malloc(bytes + 1), *after = malloc(bytes + 1);
    bool in_place = c->in_place || c->kind == BCAST;
    CHECK(host && after);
    fill(c->type, host, most, r->rank);
    char *send = device_copy(host, bytes), *receive = in_place ? send : device_copy(host, bytes), *from = send;
    if (in_place && place_of_send(c, r) < 0) receive = send + (size_t)r->rank * c->count * width;
    if (in_place && place_of_send(c, r) > 0) {
        from = send + (size_t)place_of_send(c, r) * width;
        CHECK(cudaMemcpy(from, send, c->count * width, cudaMemcpyDeviceToDevice) == cudaSuccess);
    }
    device_read(host, receive, (scatters ? c->count : most) * width);
    void *device_scalar;
    ncclRedOp_t op = make_redop(c, r, &device_scalar);
    CHECK(issue(c, r, from, receive, op) == ncclSuccess);
    if (c->op >= ncclNumOps) CHECK(ncclRedOpDestroy(op, r->comm) == ncclSuccess);
    CHECK(cudaStreamSynchronize(r->stream) == cudaSuccess);
    size_t received = gathers || c->kind == ALL_TO_ALL ? most : c->count;
    device_read(after, receive, received * width);
    for (size_t i = 0; i < received; i++) expect(c, r, i, host, after);
    for (size_t i = 0; i < received * width; i++)
        if (host[i] != after[i]) {
            fprintf(stderr, "kind %d, count %zu, type %d, op %d, root %d, in place %d: rank %d of %d differs at %zu\n",
                    c->kind, c->count, (int)c->type, c->op, c->root, in_place, r->rank, r->size, i / width);
            abort();
        }
    cudaFree(send);
    if (!in_place) cudaFree(receive);
    if (device_scalar) cudaFree(device_scalar);
    free(host);
    free(after);
}

static bool reduces(int kind)
{
    return kind == ALL_REDUCE || kind == REDUCE_SCATTER || kind == REDUCE;
}

/* Two and three ranks get more than the others do; whether a call is in place changes from one to the next. */
static void all_types_and_operators(test_rank *r)
{
    static const size_t counts[] = {37, 3001};
    bool all = !SANITIZED && (r->size == 2 || r->size == 3);
    for (int kind = 0; kind < KINDS; kind++)
        for (int type = 0; type < ncclNumTypes; type++)
            for (int op = 0; op < (reduces(kind) ? ncclNumOps + 2 : 1); op++)
                for (int n = 0; n < (all ? 2 : 1); n++)
                    check_call(r, &(call){.kind = kind,
                                          .count = counts[n],
                                          .type = (ncclDataType_t)type,
                                          .op = op,
                                          .root = (type + op) % r->size,
                                          .in_place = kind != ALL_TO_ALL && (type + op + n + kind) % 2});
}

/* Calls collectives of more than one chunk, and of more than a whole number of chunks. */
static void several_chunks(test_rank *r)
{
    static const ncclDataType_t types[] = {ncclFloat64, ncclBfloat16};
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t t = 0; t < (SANITIZED ? 1 : 2); t++)
            for (int in_place = 0; in_place < (kind == ALL_TO_ALL ? 1 : 2); in_place++)
                check_call(r, &(call){.kind = kind,
                                      .count = t ? 300001 : 70001,
                                      .type = types[t],
                                      .op = ncclSum,
                                      .root = r->size - 1,
                                      .in_place = in_place});
}

static void nothing_is_nothing(test_rank *r)
{
    if (r->rank == 0) CHECK(ncclAllReduce(NULL, NULL, 0, ncclFloat32, ncclSum, r->comm, r->stream) == ncclSuccess);
    CHECK(cudaStreamSynchronize(r->stream) == cudaSuccess);
}

static void a_few(test_rank *r)
{
    for (int kind = 0; kind < KINDS; kind++)
        check_call(r, &(call){.kind = kind, .count = 70001, .type = ncclFloat64, .op = ncclSum, .root = 0});
    check_call(r, &(call){.kind = ALL_REDUCE, .count = 1001, .type = ncclFloat16, .op = ncclAvg, .in_place = true});
}

/* ---- The order of sums ---- */

enum { ORDERED = 64, SIZES = 12 };

/* A rank's number for an order of ranks to be seen: adding it before or after the others rounds otherwise. */
static float rough(int rank, size_t i)
{
    return ldexpf(1.0f + (float)((i * 13 + (size_t)rank * 29) % 97) / 128, rank % 2 ? 24 : (int)(i % 5));
}

/* Reduces `count` rough numbers; out[i] is what this rank got, with its own part of a reduce-scatter at its place. */
static void sum_rough(const test_rank *r, bool scatter, size_t count, float *out)
{
    size_t all = scatter ? count * (size_t)r->size : count;
    float *host = malloc(all * sizeof *host);
    CHECK(host);
    for (size_t i = 0; i < all; i++) host[i] = rough(r->rank, i);
    float *send = device_copy(host, all * sizeof *host), *receive = device_copy(host, count * sizeof *host);
    if (scatter)
        CHECK(ncclReduceScatter(send, receive, count, ncclFloat32, ncclSum, r->comm, r->stream) == ncclSuccess);
    else
        CHECK(ncclAllReduce(send, receive, count, ncclFloat32, ncclSum, r->comm, r->stream) == ncclSuccess);
    CHECK(cudaStreamSynchronize(r->stream) == cudaSuccess);
    device_read(out, receive, count * sizeof *out);
    cudaFree(send);
    cudaFree(receive);
    free(host);
}

static float in_rank_order(int ranks, size_t i)
{
    float sum = rough(0, i);
    for (int rank = 1; rank < ranks; rank++) sum += rough(rank, i);
    return sum;
}

typedef struct {
    bool rank_order[2][SIZES];
    float sums[2][SIZES][ORDERED];
} sums_seen;

/* Rank 0 notes its sums; the other ranks must have the same of an all-reduce, and each the same when it is repeated. */
static void note_sums(test_rank *r)
{
    sums_seen *seen = (sums_seen *)(uintptr_t)r->argument;
    for (int scatter = 0; scatter < 2; scatter++)
        for (size_t n = 0; n < SIZES; n++) {
            float first[ORDERED] = {0}, again[ORDERED] = {0}, zeros[ORDERED] = {0};
            const size_t count = ORDERED - n;
            sum_rough(r, scatter, count, first);
            sum_rough(r, scatter, count, again);
            CHECK(!memcmp(first, again, sizeof first));
            if (!scatter) {
                float *all = device_copy(r->rank ? zeros : first, sizeof first);
                CHECK(ncclBroadcast(all, all, ORDERED, ncclFloat32, 0, r->comm, r->stream) == ncclSuccess);
                CHECK(cudaStreamSynchronize(r->stream) == cudaSuccess);
                device_read(again, all, sizeof again);
                cudaFree(all);
                CHECK(!memcmp(first, again, sizeof first));
            }
            if (r->rank) continue;
            memcpy(seen->sums[scatter][n], first, sizeof first);
            seen->rank_order[scatter][n] = true;
            for (size_t i = 0; i < count; i++)
                if (first[i] != in_rank_order(r->size, i)) seen->rank_order[scatter][n] = false;
        }
}

static void sums_have_an_order_of_their_own(void **state)
{
    (void)state;
    static sums_seen seen[3];
    for (int run = 0; run < 3; run++) {
        if (run == 2) setenv("HOSTNCCL_SEED", "5", 1);
        ranks_run_threads(4, note_sums, &seen[run]);
    }
    unsetenv("HOSTNCCL_SEED");
    CHECK(!memcmp(&seen[0], &seen[1], sizeof seen[0]));
    CHECK(memcmp(&seen[0].sums, &seen[2].sums, sizeof seen[0].sums));
    for (int scatter = 0; scatter < 2; scatter++) {
        int in_order = 0;
        for (size_t n = 0; n < SIZES; n++) in_order += seen[0].rank_order[scatter][n];
        print_message("%s: %d of %d sizes are added in the order of the ranks\n",
                      scatter ? "reduce-scatter" : "all-reduce", in_order, SIZES);
        CHECK(in_order < SIZES / 2);
    }
}

static void threads(void **state)
{
    (void)state;
    for (int size = 1; size <= 4; size += SANITIZED ? 2 : 1) {
        ranks_run_threads(size, all_types_and_operators, NULL);
        ranks_run_threads(size, nothing_is_nothing, NULL);
    }
}

static void threads_with_large_buffers(void **state)
{
    (void)state;
    for (int size = SANITIZED ? 3 : 1; size <= (SANITIZED ? 3 : 4); size++)
        ranks_run_threads(size, several_chunks, NULL);
}

static void processes(void **state)
{
    (void)state;
    ranks_run_processes(2, a_few);
    ranks_run_processes(3, a_few);
}

int main(int argc, char **argv)
{
    ranks_enter(argc, argv, (rank_body *[]){a_few, NULL});
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_floats_round_to_the_nearest),
        cmocka_unit_test(sums_have_an_order_of_their_own),
        cmocka_unit_test(threads),
        cmocka_unit_test(threads_with_large_buffers),
        cmocka_unit_test(processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
