/* Draws legal programs from a seed: all operations, data types, operators and counts, in groups and out of them, in
 * place or not, on several streams and communicators that come and go, captured into graphs or not; and compares each
 * result with what it must be. The script is drawn alike on every rank; each rank does its part of it.
 *
 *     fuzz [-n RANKS] [--processes] [--seed N] [--calls N] [--compressed BYTES] [--one-stream]
 *
 * With --compressed all-reduces of floats above BYTES are not compared: they may be close only. With --one-stream an
 * operation is on the same stream on every rank. Prints what all programs here print. */
#include "tests/nccl/programs/shared/ranks.h"
#include "tests/nccl/programs/shared/values.h"
#include "tests/support/draw.h"
#include "tests/support/scale.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 3, COMMUNICATORS = 6, OPERATIONS = 16, RANKS = 4, ARENA = 24 << 20 };

typedef enum {
    ALL_REDUCE,
    REDUCE_SCATTER,
    ALL_GATHER,
    REDUCE,
    BROADCAST,
    ALL_TO_ALL,
    GATHER,
    SCATTER,
    MESSAGE,
    KINDS
} kind;

static const char *const kind_names[] = {"all-reduce", "reduce-scatter", "all-gather", "reduce", "broadcast",
                                         "all-to-all", "gather",         "scatter",    "message"};

/* A communicator as the script sees it: on every rank the same, but for the handle, which is NULL if the rank is
 * not a member. */
typedef struct {
    bool alive, nonblocking;
    int size, members[RANKS]; /* ranks of the world, by their rank in the communicator */
    int mine;                 /* this rank's place there, or -1 */
    ncclComm_t handle;
} communicator;

typedef struct {
    kind kind;
    communicator *among;
    ncclDataType_t dtype;
    ncclRedOp_t redop, handle; /* `handle` is NCCL's number of it, if the program makes it */
    size_t count;
    int root, to;                              /* a message goes from `root` to `to` */
    bool in_place, closes_group, own_operator; /* the program made the operator */
    int stream;
    uint64_t seed;
    size_t place;          /* of its memory in the arenas */
    size_t sent, received; /* bytes of this rank */
} operation;

/* Device memory in four parts of the same layout: inputs, the two buffers of operations, results. */
typedef struct {
    char *input, *send, *receive, *result, *host, *expected;
} arenas;

typedef struct {
    slc_rank *rank;
    uint64_t script; /* the state of the drawn numbers, alike on all ranks */
    communicator communicators[COMMUNICATORS];
    cudaStream_t streams[STREAMS];
    arenas memory;
    operation operations[OPERATIONS];
    size_t operation_count;
    uint64_t drawn, batches;
} fuzzer;

static struct {
    uint64_t seed, calls;
    size_t compressed;
    bool one_stream;
} options = {.seed = 1, .compressed = (size_t)-1};

static const ncclDataType_t dtypes[] = {ncclInt8,       ncclUint8,      ncclInt32,   ncclUint32,  ncclInt64,
                                        ncclUint64,     ncclFloat16,    ncclFloat32, ncclFloat64, ncclBfloat16,
                                        ncclFloat8e4m3, ncclFloat8e5m2, ncclFloat32, ncclFloat32, ncclBfloat16};

/* ---- communicators ---- */

/* Waits until the calls on a communicator that does not block are done. */
static void settle(const communicator *c, ncclResult_t result)
{
    while (result == ncclInProgress) {
        sched_yield();
        NCCL(ncclCommGetAsyncError(c->handle, &result));
    }
    CHECK(result == ncclSuccess, "a call on a communicator of %d ranks: %s", c->size, ncclGetErrorString(result));
}

static communicator *free_place(fuzzer *f)
{
    for (int i = 0; i < COMMUNICATORS; i++)
        if (!f->communicators[i].alive) return &f->communicators[i];
    return NULL;
}

static communicator *drawn_communicator(fuzzer *f)
{
    for (;;) {
        communicator *c = &f->communicators[draw(&f->script, COMMUNICATORS)];
        if (c->alive) return c;
    }
}

static void destroy_communicator(communicator *c, bool finalize)
{
    c->alive = false;
    if (!c->handle) return;
    if (finalize || c->nonblocking) settle(c, ncclCommFinalize(c->handle));
    NCCL(ncclCommDestroy(c->handle));
    c->handle = NULL;
}

/* One more communicator of all ranks, whose name rank 0 tells the others through the first one. */
static void create_world(fuzzer *f, const ncclUniqueId *name)
{
    communicator *c = free_place(f);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    *c = (communicator){.alive = true, .size = f->rank->size, .mine = f->rank->rank};
    for (int r = 0; r < c->size; r++) c->members[r] = r;
    /* The second one never blocks, so that there are some of each kind whatever is drawn. */
    c->nonblocking = c != f->communicators && (draw(&f->script, 3) == 0 || !f->batches);
    config.blocking = !c->nonblocking;
    settle(c, ncclCommInitRankConfig(&c->handle, c->size, *name, c->mine, &config));
}

static void create_another_world(fuzzer *f)
{
    ncclUniqueId name;
    if (f->rank->rank == 0) NCCL(ncclGetUniqueId(&name));
    CUDA(cudaMemcpy(f->memory.send, &name, sizeof name, cudaMemcpyHostToDevice));
    CUDA(cudaStreamSynchronize(NULL)); /* a copy from memory that is not pinned may return before it has arrived */
    NCCL(ncclBroadcast(f->memory.send, f->memory.send, sizeof name, ncclChar, 0, f->communicators[0].handle,
                       f->streams[0]));
    f->rank->calls++;
    CUDA(cudaStreamSynchronize(f->streams[0]));
    CUDA(cudaMemcpy(&name, f->memory.send, sizeof name, cudaMemcpyDeviceToHost));
    create_world(f, &name);
}

/* The members of `parent` with this colour, by key and then by their rank there. */
static void name_members(communicator *c, const communicator *parent, const int *colours, const int *keys, int colour,
                         int me)
{
    *c = (communicator){.alive = true, .nonblocking = parent->nonblocking, .mine = -1};
    for (int key = 0; key < RANKS; key++)
        for (int r = 0; r < parent->size; r++)
            if (colours[r] == colour && keys[r] == key) c->members[c->size++] = parent->members[r];
    for (int r = 0; r < c->size; r++)
        if (c->members[r] == me) c->mine = r;
    c->alive = c->size > 0;
}

static void split(fuzzer *f)
{
    communicator *parent = drawn_communicator(f);
    int colours[RANKS], keys[RANKS];
    for (int r = 0; r < parent->size; r++) {
        colours[r] = draw(&f->script, 6) == 0 ? NCCL_SPLIT_NOCOLOR : (int)draw(&f->script, 2);
        keys[r] = (int)draw(&f->script, RANKS);
    }
    ncclComm_t made = NULL;
    if (parent->mine >= 0) {
        settle(parent, ncclCommSplit(parent->handle, colours[parent->mine], keys[parent->mine], &made, NULL));
        f->rank->calls++;
    }
    for (int colour = 0; colour < 2; colour++) {
        communicator *c = free_place(f);
        name_members(c, parent, colours, keys, colour, f->rank->rank);
        if (c->mine < 0) continue;
        c->handle = made;
        CHECK(made, "rank %d: a split gave no communicator", f->rank->rank);
        if (c->nonblocking) settle(c, ncclInProgress);
        int rank, size;
        NCCL(ncclCommUserRank(made, &rank));
        NCCL(ncclCommCount(made, &size));
        CHECK(rank == c->mine && size == c->size, "rank %d: a split made it rank %d of %d, not %d of %d", f->rank->rank,
              rank, size, c->mine, c->size);
    }
}

static void change_communicators(fuzzer *f)
{
    int places = 0;
    for (int i = 0; i < COMMUNICATORS; i++) places += !f->communicators[i].alive;
    if (places < 2) {
        for (int i = 1; i < COMMUNICATORS && places < 3; i++) {
            bool finalize = draw(&f->script, 2);
            if (!f->communicators[i].alive || draw(&f->script, 2)) continue;
            destroy_communicator(&f->communicators[i], finalize);
            places++;
        }
    } else if (draw(&f->script, 3)) {
        split(f);
    } else {
        create_another_world(f);
    }
}

/* ---- drawing ---- */

static size_t drawn_count(fuzzer *f)
{
    switch (draw(&f->script, 20)) {
    case 0: return 0;
    case 1:
    case 2:
    case 3: return 1 + draw(&f->script, 8);
    case 4: return 1 + draw(&f->script, 200000);
    case 5:
    case 6: return 1024 << draw(&f->script, 4);
    default: return 1 + draw(&f->script, 3000);
    }
}

/* Makes an operation one more of the previous one's kind, in its group, as the gradients of a layer are. */
static void repeat(fuzzer *f, operation *o)
{
    operation *previous = &f->operations[f->operation_count - 1];
    previous->closes_group = false;
    o->kind = previous->kind;
    o->among = previous->among;
    o->dtype = previous->dtype;
    o->redop = previous->redop;
    o->stream = previous->stream;
    o->root %= o->among->size;
    o->to %= o->among->size;
}

/* False if the arenas are full. */
static bool draw_operation(fuzzer *f, size_t *used)
{
    operation o = {.kind = draw(&f->script, KINDS), .among = drawn_communicator(f)};
    o.dtype = dtypes[draw(&f->script, sizeof dtypes / sizeof *dtypes)];
    o.redop = (ncclRedOp_t)draw(&f->script, ncclNumOps + 1); /* the last one is made by the program */
    o.count = drawn_count(f);
    o.root = (int)draw(&f->script, (uint64_t)o.among->size);
    o.to = (int)draw(&f->script, (uint64_t)o.among->size);
    o.in_place = draw(&f->script, 2);
    o.closes_group = draw(&f->script, 3) == 0;
    o.stream = (int)draw(&f->script, STREAMS);
    if (draw(&f->script, 3) == 0 && f->operation_count) repeat(f, &o);
    if (options.compressed != (size_t)-1 && draw(&f->script, 4) == 0) { /* one that can be compressed, if it is large */
        o.kind = ALL_REDUCE;
        o.dtype = ncclFloat32;
        o.redop = f->drawn % 2 ? ncclSum : ncclAvg;
    }
    o.seed = mix(options.seed) + f->drawn++;
    o.place = *used;
    size_t most = (o.count * (size_t)o.among->size * slc_dtype_bytes(o.dtype) + 255) & ~(size_t)255;
    if (*used + most > ARENA) return false;
    *used += most;
    f->operations[f->operation_count++] = o;
    return true;
}

/* ---- one operation on this rank ---- */

static bool takes_part(const operation *o)
{
    return o->among->mine >= 0 && (o->kind != MESSAGE || o->among->mine == o->root || o->among->mine == o->to);
}

/* The bytes that this rank gives and gets, and where an operation in place has them. */
static void place_operation(operation *o, size_t *send_at, size_t *receive_at)
{
    size_t bytes = o->count * slc_dtype_bytes(o->dtype), all = bytes * (size_t)o->among->size;
    size_t mine = bytes * (size_t)o->among->mine;
    bool root = o->among->mine == o->root;
    *send_at = *receive_at = 0;
    o->sent = o->received = bytes;
    switch (o->kind) {
    case REDUCE_SCATTER:
        o->sent = all;
        *receive_at = o->in_place ? mine : 0;
        break;
    case ALL_GATHER:
        o->received = all;
        *send_at = o->in_place ? mine : 0;
        break;
    case REDUCE: o->received = root ? bytes : 0; break;
    case BROADCAST: o->sent = root ? bytes : 0; break;
    case ALL_TO_ALL:
        o->sent = o->received = all;
        o->in_place = false;
        break;
    case GATHER:
        o->received = root ? all : 0;
        *send_at = o->in_place && root ? mine : 0;
        break;
    case SCATTER:
        o->sent = root ? all : 0;
        *receive_at = o->in_place && root ? mine : 0;
        break;
    case MESSAGE:
        o->sent = root ? bytes : 0;
        o->received = o->among->mine == o->to ? bytes : 0;
        o->in_place = false;
        break;
    default: break;
    }
}

static char *send_memory(const fuzzer *f, const operation *o)
{
    operation copy = *o;
    size_t send_at, receive_at;
    place_operation(&copy, &send_at, &receive_at);
    return (copy.in_place ? f->memory.receive : f->memory.send) + o->place + send_at;
}

/* Returns where an operation receives; one in place sends from the same buffer. */
static char *receive_memory(const fuzzer *f, const operation *o)
{
    operation copy = *o;
    size_t send_at, receive_at;
    place_operation(&copy, &send_at, &receive_at);
    return f->memory.receive + o->place + receive_at;
}

/* The values that rank `from` of the communicator gives. */
static void give(const operation *o, void *memory, size_t first, size_t count, int from)
{
    ncclRedOp_t redop = o->kind <= REDUCE_SCATTER || o->kind == REDUCE ? o->redop : ncclMax;
    slc_values_give(memory, first, count, o->dtype, o->seed, from, o->among->size, redop);
}

static void expect(const operation *o, char *memory)
{
    size_t bytes = o->count * slc_dtype_bytes(o->dtype), mine = o->count * (size_t)o->among->mine;
    if (!o->received) return;
    switch (o->kind) {
    case ALL_REDUCE:
    case REDUCE_SCATTER:
    case REDUCE:
        for (size_t i = 0; i < o->count; i++)
            slc_value_write(
                memory, i, o->dtype,
                slc_value_reduced(o->seed, o->among->size, i + (o->kind == REDUCE_SCATTER ? mine : 0), o->redop));
        break;
    case ALL_GATHER:
    case GATHER:
        for (int r = 0; r < o->among->size; r++) give(o, memory + bytes * (size_t)r, 0, o->count, r);
        break;
    case ALL_TO_ALL:
        for (int r = 0; r < o->among->size; r++) give(o, memory + bytes * (size_t)r, mine, o->count, r);
        break;
    case SCATTER: give(o, memory, mine, o->count, o->root); break;
    default: give(o, memory, 0, o->count, o->root);
    }
}

static ncclResult_t call_nccl(const fuzzer *f, const operation *o)
{
    cudaStream_t stream = f->streams[o->stream];
    ncclComm_t among = o->among->handle;
    char *send = send_memory(f, o), *receive = receive_memory(f, o);
    ncclResult_t result = ncclSuccess;
    switch (o->kind) {
    case ALL_REDUCE: return ncclAllReduce(send, receive, o->count, o->dtype, o->handle, among, stream);
    case REDUCE_SCATTER: return ncclReduceScatter(send, receive, o->count, o->dtype, o->handle, among, stream);
    case ALL_GATHER: return ncclAllGather(send, receive, o->count, o->dtype, among, stream);
    case REDUCE: return ncclReduce(send, receive, o->count, o->dtype, o->handle, o->root, among, stream);
    case BROADCAST:
        if (o->in_place && o->seed % 2) return ncclBcast(receive, o->count, o->dtype, o->root, among, stream);
        return ncclBroadcast(send, receive, o->count, o->dtype, o->root, among, stream);
    case ALL_TO_ALL: return ncclAlltoAll(send, receive, o->count, o->dtype, among, stream);
    case GATHER: return ncclGather(send, receive, o->count, o->dtype, o->root, among, stream);
    case SCATTER: return ncclScatter(send, receive, o->count, o->dtype, o->root, among, stream);
    default: /* a message: the sender's half, the receiver's, or both */
        if (o->among->mine == o->root) result = ncclSend(send, o->count, o->dtype, o->to, among, stream);
        if (o->among->mine == o->to && (result == ncclSuccess || result == ncclInProgress))
            result = ncclRecv(receive, o->count, o->dtype, o->root, among, stream);
        return result;
    }
}

/* ---- a batch ---- */

static void draw_batch(fuzzer *f)
{
    size_t used = 0, wanted = 1 + draw(&f->script, OPERATIONS);
    f->operation_count = 0;
    while (f->operation_count < wanted && draw_operation(f, &used)) continue;
}

/* Puts inputs into the arena, and makes the operators. */
static void prepare(fuzzer *f)
{
    for (size_t k = 0; k < f->operation_count; k++) {
        operation *o = &f->operations[k];
        size_t send_at, receive_at, bytes = slc_dtype_bytes(o->dtype);
        o->handle = o->redop;
        if (!takes_part(o)) continue;
        place_operation(o, &send_at, &receive_at);
        give(o, f->memory.host + o->place, 0, o->sent / bytes, o->among->mine);
        CUDA(cudaMemcpy(f->memory.input + o->place, f->memory.host + o->place, o->sent, cudaMemcpyHostToDevice));
        o->own_operator = o->redop == ncclNumOps && (o->kind <= REDUCE_SCATTER || o->kind == REDUCE);
        if (!o->own_operator) continue;
        uint64_t factor;
        slc_value_write(&factor, 0, o->dtype, 2);
        NCCL(ncclRedOpCreatePreMulSum(&o->handle, &factor, o->dtype, ncclScalarHostImmediate, o->among->handle));
    }
    CUDA(cudaStreamSynchronize(NULL)); /* copies from memory that is not pinned may return before they have arrived */
}

static void copy_inputs(fuzzer *f, size_t first, size_t end)
{
    for (size_t k = first; k < end; k++) {
        const operation *o = &f->operations[k];
        if (takes_part(o) && o->sent)
            CUDA(cudaMemcpyAsync(send_memory(f, o), f->memory.input + o->place, o->sent, cudaMemcpyDeviceToDevice,
                                 f->streams[o->stream]));
    }
}

/* Copies the results behind the calls on their streams, and spoils the buffers: a stream must finish what a call
 * enqueued before it does what was enqueued after the call. */
static void copy_results(fuzzer *f, size_t first, size_t end)
{
    for (size_t k = first; k < end; k++) {
        const operation *o = &f->operations[k];
        cudaStream_t stream = f->streams[o->stream];
        if (!takes_part(o)) continue;
        if (o->received)
            CUDA(cudaMemcpyAsync(f->memory.result + o->place, receive_memory(f, o), o->received,
                                 cudaMemcpyDeviceToDevice, stream));
        if (o->sent) CUDA(cudaMemsetAsync(send_memory(f, o), 0xee, o->sent, stream));
        if (o->received) CUDA(cudaMemsetAsync(receive_memory(f, o), 0xdd, o->received, stream));
    }
}

/* Calls the operations from `first` to `end`, in a group if there are several or if a rank sends to itself. */
static void call_group(fuzzer *f, size_t first, size_t end)
{
    const operation *only = &f->operations[first];
    bool grouped = end - first > 1 || (only->kind == MESSAGE && only->root == only->to);
    copy_inputs(f, first, end);
    if (grouped) NCCL(ncclGroupStart());
    ncclResult_t result = ncclSuccess;
    for (size_t k = first; k < end; k++) {
        const operation *o = &f->operations[k];
        if (!takes_part(o)) continue;
        result = call_nccl(f, o);
        CHECK(result == ncclSuccess || (o->among->nonblocking && result == ncclInProgress), "%s: %s",
              kind_names[o->kind], ncclGetErrorString(result));
        if (o->count || o->kind == MESSAGE) f->rank->calls += 1 + (o->kind == MESSAGE && o->root == o->to);
    }
    if (grouped) result = ncclGroupEnd();
    CHECK(result == ncclSuccess || result == ncclInProgress, "ncclGroupEnd: %s", ncclGetErrorString(result));
    for (size_t k = first; k < end; k++)
        if (takes_part(&f->operations[k]) && f->operations[k].among->nonblocking)
            settle(f->operations[k].among, ncclInProgress);
    copy_results(f, first, end);
}

/* True if operation `end` may join the group that begins at `first` and ends, so far, before it. NCCL takes no group of
 * communicators that block and that do not. A group's communicators are launched in the order in which each rank names
 * them first; ranks that have no part in a message would name them in another order, if the script went back to one. */
static bool fits_group(const fuzzer *f, size_t first, size_t end)
{
    const communicator *among = f->operations[end].among;
    if (f->operations[end - 1].closes_group || among->nonblocking != f->operations[first].among->nonblocking)
        return false;
    if (among == f->operations[end - 1].among) return true;
    for (size_t k = first; k < end; k++)
        if (f->operations[k].among == among) return false;
    return true;
}

static void call_batch(fuzzer *f)
{
    for (size_t first = 0; first < f->operation_count;) {
        size_t end = first + 1;
        while (end < f->operation_count && fits_group(f, first, end)) end++;
        call_group(f, first, end);
        first = end;
    }
}

/* The whole batch becomes a graph, which is launched as often as drawn. */
static void capture_batch(fuzzer *f)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStream_t stream = f->streams[f->operations[0].stream];
    int launches = 1 + (int)draw(&f->script, 2);
    for (size_t k = 0; k < f->operation_count; k++) f->operations[k].stream = f->operations[0].stream;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    call_batch(f);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < launches; i++) CUDA(cudaGraphLaunch(executable, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));
}

static bool is_compressed(const operation *o)
{
    return o->kind == ALL_REDUCE && o->dtype == ncclFloat32 && (o->redop == ncclSum || o->redop == ncclAvg) &&
           o->count * sizeof(float) > options.compressed;
}

static void check_batch(fuzzer *f)
{
    for (size_t k = 0; k < f->operation_count; k++) {
        const operation *o = &f->operations[k];
        if (!takes_part(o)) continue;
        if (o->own_operator) NCCL(ncclRedOpDestroy(o->handle, o->among->handle));
        char *got = f->memory.host + o->place, *expected = f->memory.expected + o->place;
        size_t count = o->received / slc_dtype_bytes(o->dtype);
        if (!count || is_compressed(o)) continue;
        CUDA(cudaMemcpy(got, f->memory.result + o->place, o->received, cudaMemcpyDeviceToHost));
        expect(o, expected);
        size_t at = slc_values_differ(got, expected, count, o->dtype);
        CHECK(at == count,
              "seed %llu, rank %d, batch %llu: %s %zu of %zu, data type %d, operator %d, root %d, %zu elements, "
              "rank %d of %d%s, stream %d: element %zu is wrong",
              (unsigned long long)options.seed, f->rank->rank, (unsigned long long)f->batches, kind_names[o->kind], k,
              f->operation_count, (int)o->dtype, (int)o->redop, o->root, o->count, o->among->mine, o->among->size,
              o->in_place ? ", in place" : "", o->stream, at);
        slc_rank_result(f->rank, got, o->received);
    }
}

static bool any_nonblocking(const fuzzer *f)
{
    bool any = false;
    for (size_t k = 0; k < f->operation_count; k++) any |= f->operations[k].among->nonblocking;
    return any;
}

static void run_batch(fuzzer *f)
{
    slc_ranks_alive();
    draw_batch(f);
    bool captured = draw(&f->script, 10) == 0 && !any_nonblocking(f), apart = draw(&f->script, 4) == 0;
    if (apart && !options.one_stream) /* ranks may use different streams for the same operation */
        for (size_t k = 0; k < f->operation_count; k++)
            f->operations[k].stream = (int)(mix(f->operations[k].seed * 31 + (uint64_t)f->rank->rank) % STREAMS);
    prepare(f);
    if (captured)
        capture_batch(f);
    else
        call_batch(f);
    for (int s = 0; s < STREAMS; s++) CUDA(cudaStreamSynchronize(f->streams[s]));
    check_batch(f);
    f->batches++;
}

static void allocate(fuzzer *f)
{
    char **device[] = {&f->memory.input, &f->memory.send, &f->memory.receive, &f->memory.result};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++) CUDA(cudaMalloc((void **)device[i], ARENA));
    f->memory.host = malloc(ARENA);
    f->memory.expected = malloc(ARENA);
    CHECK(f->memory.host && f->memory.expected, "no memory");
    for (int s = 0; s < STREAMS; s++) CUDA(cudaStreamCreateWithFlags(&f->streams[s], cudaStreamNonBlocking));
}

static void fuzz(slc_rank *rank)
{
    CHECK(rank->size <= RANKS, "the fuzzer is for at most %d ranks", RANKS);
    fuzzer *f = calloc(1, sizeof *f);
    CHECK(f, "no memory");
    *f = (fuzzer){.rank = rank, .script = mix(options.seed)};
    allocate(f);
    create_world(f, &rank->ids[0]);
    create_another_world(f);
    while (f->drawn < options.calls) {
        if (draw(&f->script, 8) == 0) change_communicators(f);
        run_batch(f);
    }
    for (int i = COMMUNICATORS - 1; i >= 0; i--)
        if (f->communicators[i].alive) destroy_communicator(&f->communicators[i], i % 2);
    char *device[] = {f->memory.input, f->memory.send, f->memory.receive, f->memory.result};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++) CUDA(cudaFree(device[i]));
    for (int s = 0; s < STREAMS; s++) CUDA(cudaStreamDestroy(f->streams[s]));
    free(f->memory.host);
    free(f->memory.expected);
    free(f);
}

static uint64_t number_after(char **argv, int *i, const char *name)
{
    CHECK(argv[*i + 1], "%s: give a number", name);
    return strtoull(argv[++*i], NULL, 0);
}

/* The options of ranks.h are left to it. */
static void read_options(int argc, char **argv)
{
    options.calls = test_rounds(1500);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--seed"))
            options.seed = number_after(argv, &i, "--seed");
        else if (!strcmp(argv[i], "--calls"))
            options.calls = number_after(argv, &i, "--calls");
        else if (!strcmp(argv[i], "--compressed"))
            options.compressed = number_after(argv, &i, "--compressed");
        else if (!strcmp(argv[i], "--one-stream"))
            options.one_stream = true;
        else if (!strcmp(argv[i], "-n"))
            i++;
        else
            CHECK(!strcmp(argv[i], "--processes"), "%s is not an option", argv[i]);
    }
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    uint64_t state = options.seed;
    return slc_ranks_run(&argc, argv, 2 + (int)draw(&state, RANKS - 1), 120, fuzz);
}
