/* Collectives go through the ranks' stages in chunks: each rank puts its part of a chunk there, all meet, each takes
 * what is its own. A stage has two halves, so one meeting a chunk is enough: whoever fills a half again has met
 * everybody after the chunk in between, and so after they took what lay in it. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include <string.h>

enum { MOST_SOURCES = HOSTNCCL_RANKS };

void hostnccl_hang(ncclComm_t comm)
{
    for (unsigned spins = 0; !atomic_load(&comm->stopped);) {
        uint32_t bell = atomic_load(&comm->segment->control->bell);
        if (!atomic_load(&comm->stopped)) hostnccl_segment_wait(comm->segment, bell, &spins);
    }
}

/* Waits until each rank has come here; false when the communicator was stopped. */
static bool meet(ncclComm_t comm)
{
    hostnccl_segment *segment = comm->segment;
    uint32_t mine = ++comm->meetings;
    atomic_store(&segment->rows[comm->rank].steps, mine);
    hostnccl_segment_ring(segment);
    int next = 0;
    for (unsigned spins = 0;;) {
        uint32_t bell = atomic_load(&segment->control->bell);
        while (next < comm->size && (int32_t)(atomic_load(&segment->rows[next].steps) - mine) >= 0) next++;
        if (next == comm->size) return !atomic_load(&comm->stopped);
        if (atomic_load(&comm->stopped)) return false;
        hostnccl_segment_wait(segment, bell, &spins);
    }
}

/* Returns how many parts of a chunk a rank's stage holds. */
static size_t slices(const hostnccl_operation *o)
{
    bool all = o->kind == HOSTNCCL_REDUCE_SCATTER || o->kind == HOSTNCCL_ALL_TO_ALL || o->kind == HOSTNCCL_SCATTER;
    return all ? (size_t)o->comm->size : 1;
}

static size_t chunk_elements(const hostnccl_operation *o)
{
    return o->comm->segment->stage_bytes / slices(o) / hostnccl_type_bytes(o->type);
}

static uint64_t chunk_count(const hostnccl_operation *o)
{
    size_t chunk = chunk_elements(o);
    return (o->count + chunk - 1) / chunk;
}

static char *stage(const hostnccl_operation *o, int rank)
{
    return hostnccl_segment_stage(o->comm->segment, rank, o->comm->chunks);
}

/* Copies n elements, multiplied if the operator says so. */
static void put_elements(const hostnccl_operation *o, const char *from, char *to, size_t n)
{
    if (o->op == ncclNumOps)
        hostnccl_scale(o->type, o->device_scalar ? o->device_scalar : &o->scalar, from, to, n);
    else if (o->op == ncclAvg && hostnccl_type_is_float(o->type))
        hostnccl_scale_average(o->type, o->comm->size, from, to, n);
    else
        memcpy(to, from, n * hostnccl_type_bytes(o->type));
}

static void put(const hostnccl_operation *o, size_t at, size_t n)
{
    size_t width = hostnccl_type_bytes(o->type), chunk = chunk_elements(o);
    const char *from = o->send;
    char *to = stage(o, o->comm->rank);
    bool root_only = o->kind == HOSTNCCL_BROADCAST || o->kind == HOSTNCCL_SCATTER;
    if (root_only && o->comm->rank != o->root) return;
    for (size_t s = 0; s < slices(o); s++)
        put_elements(o, from + (s * o->count + at) * width, to + s * chunk * width, n);
}

/* Draws the order in which the ranks' parts of a chunk are added. NCCL's own follows from the operation, its size and
 * the channel that carries the part, so it repeats from call to call and is not the order of the ranks: here the chunk
 * is the channel. `owner` is the rank whose part of a reduce-scatter it is, 0 elsewhere. */
static void draw_order(const hostnccl_operation *o, uint64_t chunk, int owner, int order[MOST_SOURCES])
{
    uint64_t words[] = {(uint64_t)o->kind,       o->count, (uint64_t)o->type,
                        (uint64_t)o->comm->size, chunk,    (uint64_t)owner};
    uint64_t random = hostnccl_sums_seed();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) random = hostnccl_draw(&random) ^ words[i];
    for (int rank = 0; rank < o->comm->size; rank++) {
        int place = (int)(hostnccl_draw(&random) % (uint64_t)(rank + 1));
        order[rank] = order[place];
        order[place] = rank;
    }
}

/* Reduces elements [low, high) of all ranks' stages of a chunk, from `offset` bytes on. */
static void reduce_stages(const hostnccl_operation *o, uint64_t chunk, size_t offset, size_t low, size_t high,
                          char *out)
{
    const void *sources[MOST_SOURCES];
    int order[MOST_SOURCES];
    size_t width = hostnccl_type_bytes(o->type);
    draw_order(o, chunk, o->kind == HOSTNCCL_REDUCE_SCATTER ? o->comm->rank : 0, order);
    for (int i = 0; i < o->comm->size; i++) sources[i] = stage(o, order[i]) + offset + low * width;
    hostnccl_reduce(o->type, o->op, o->comm->size, sources, out, high - low);
}

static void take(const hostnccl_operation *o, size_t at, size_t n)
{
    ncclComm_t comm = o->comm;
    size_t width = hostnccl_type_bytes(o->type), mine = (size_t)comm->rank * chunk_elements(o) * width;
    uint64_t chunk = at / chunk_elements(o);
    char *to = (char *)o->receive + at * width;
    switch (o->kind) {
    case HOSTNCCL_ALL_REDUCE: reduce_stages(o, chunk, 0, 0, n, to); break;
    case HOSTNCCL_REDUCE:
        if (comm->rank == o->root) reduce_stages(o, chunk, 0, 0, n, to);
        break;
    case HOSTNCCL_REDUCE_SCATTER: reduce_stages(o, chunk, mine, 0, n, to); break;
    case HOSTNCCL_BROADCAST: memcpy(to, stage(o, o->root), n * width); break;
    case HOSTNCCL_SCATTER: memcpy(to, stage(o, o->root) + mine, n * width); break;
    case HOSTNCCL_GATHER:
        if (comm->rank != o->root) break;
        __attribute__((fallthrough));
    case HOSTNCCL_ALL_GATHER:
    case HOSTNCCL_ALL_TO_ALL:
        for (int rank = 0; rank < comm->size; rank++)
            memcpy(to + (size_t)rank * o->count * width, stage(o, rank) + (o->kind == HOSTNCCL_ALL_TO_ALL ? mine : 0),
                   n * width);
        break;
    default: break;
    }
}

/* An all-reduce of three ranks or more: each one reduces its share of the chunk in its own stage, then all copy. */
static bool take_shares(const hostnccl_operation *o, size_t at, size_t n)
{
    ncclComm_t comm = o->comm;
    size_t width = hostnccl_type_bytes(o->type), size = (size_t)comm->size, rank = (size_t)comm->rank;
    size_t low = n * rank / size, high = n * (rank + 1) / size;
    reduce_stages(o, at / chunk_elements(o), 0, low, high, stage(o, comm->rank) + low * width);
    if (!meet(comm)) return false;
    for (size_t other = 0; other < size; other++) {
        size_t from = n * other / size, to = n * (other + 1) / size;
        memcpy((char *)o->receive + (at + from) * width, stage(o, (int)other) + from * width, (to - from) * width);
    }
    return true;
}

static hostnccl_description describe(const hostnccl_operation *o)
{
    return (hostnccl_description){
        .count = o->count, .operation = (int)o->kind, .type = (int)o->type, .redop = (int)o->op, .root = o->root};
}

static uint64_t chunks_of(const hostnccl_description *d, ncclComm_t comm)
{
    hostnccl_operation o = {
        .kind = (hostnccl_kind)d->operation, .type = (ncclDataType_t)d->type, .count = d->count, .comm = comm};
    return chunk_count(&o);
}

/* True if all ranks described the same operation. *fewest becomes the fewest chunks that any of them described. */
static bool all_agree(const hostnccl_operation *o, uint64_t *fewest)
{
    ncclComm_t comm = o->comm;
    bool agree = true;
    hostnccl_description mine = describe(o);
    *fewest = UINT64_MAX;
    for (int rank = 0; rank < comm->size; rank++) {
        hostnccl_description other = comm->segment->rows[rank].described[comm->chunks & 1];
        uint64_t chunks = chunks_of(&other, comm);
        if (chunks < *fewest) *fewest = chunks;
        agree = agree && other.count == mine.count && other.operation == mine.operation && other.type == mine.type &&
                other.redop == mine.redop && other.root == mine.root;
    }
    return agree;
}

static double link_bytes(const hostnccl_operation *o)
{
    double bytes = (double)o->count * (double)hostnccl_type_bytes(o->type), ranks = o->comm->size;
    switch (o->kind) {
    case HOSTNCCL_ALL_REDUCE: return bytes * 2 * (ranks - 1) / ranks;
    case HOSTNCCL_REDUCE:
    case HOSTNCCL_BROADCAST: return bytes;
    default: return bytes * (ranks - 1);
    }
}

bool hostnccl_collective_run(const hostnccl_operation *o)
{
    ncclComm_t comm = o->comm;
    size_t chunk = chunk_elements(o);
    uint64_t chunks = chunk_count(o);
    bool shares = o->kind == HOSTNCCL_ALL_REDUCE && comm->size > 2;
    int64_t begin_ns = 0;
    comm->segment->rows[comm->rank].described[comm->chunks & 1] = describe(o);
    for (uint64_t c = 0; c < chunks; c++, comm->chunks++) {
        size_t at = c * chunk, n = o->count - at < chunk ? o->count - at : chunk;
        put(o, at, n);
        if (!meet(comm)) return false;
        if (c == 0) {
            begin_ns = hostnccl_clock_ns();
            uint64_t fewest;
            if (!all_agree(o, &fewest)) {
                if (!hostnccl_mismatch_corrupts()) {
                    hostnccl_hang(comm);
                    return false;
                }
                shares = false;
                if (fewest < chunks) chunks = fewest;
            }
        }
        if (!shares)
            take(o, at, n);
        else if (!take_shares(o, at, n))
            return false;
    }
    hostnccl_charge(comm, begin_ns, link_bytes(o));
    return !atomic_load(&comm->stopped);
}
