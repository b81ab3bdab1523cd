/* The calls of the engine: submission with its checks, and waiting.
 * collectives_test.c covers this file. */
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/comm/lane/geometry.h"
#include "lib/comm/lane/rows/rows.h"
#include "lib/comm/lane/scratch.h"
#include "lib/comm/lane/spans.h"

static sluice_status check_shape(const slc_comm *comm, const slc_op *op)
{
    uint64_t grain = 16 * (uint64_t)comm->size;
    if (!op->elements || op->elements % grain || !op->block_elements || op->block_elements % grain)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: %llu elements in blocks of %llu; both must be multiples of 16 * %d",
                         slc_op_name(op), (unsigned long long)op->elements, (unsigned long long)op->block_elements,
                         comm->size);
    uint64_t blocks = (op->elements + op->block_elements - 1) / op->block_elements;
    if (!op->block_count || op->first_block >= blocks || op->block_count > blocks - op->first_block)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: blocks %llu + %llu of %llu", slc_op_name(op),
                         (unsigned long long)op->first_block, (unsigned long long)op->block_count,
                         (unsigned long long)blocks);
    return SLUICE_OK;
}

static sluice_status check_exchange(const slc_comm *comm, const slc_op *op)
{
    const slc_compress_group *group = op->group;
    const char *src = op->src, *dst = op->dst;
    if (!group || !op->servers || group->shapes[0].ranks != (uint32_t)comm->size || op->dtype != SLUICE_UINT8 ||
        op->block_count != 1 || op->elements != group->shapes[0].ranks * group->stride)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: packets of %u ranks; make it with slc_exchange_op, for %d ranks",
                         slc_op_name(op), group ? group->shapes[0].ranks : 0, comm->size);
    if (src < dst + slc_comm_exchange_bytes(comm, group) && dst < src + op->elements)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: packets and results overlap", slc_op_name(op));
    return SLUICE_OK;
}

static sluice_status check_kind(const slc_comm *comm, const slc_op *op)
{
    bool sum = op->kind == SLC_REDUCE_SCATTER || op->kind == SLC_ALL_REDUCE;
    bool small = op->kind == SLC_ALL_REDUCE && (op->dtype == SLUICE_INT64 || op->dtype == SLUICE_FP64);
    if (sum && op->dtype != SLUICE_FP32 && op->dtype != SLUICE_BF16 && !small)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: sums of %s", slc_op_name(op), sluice_dtype_name(op->dtype));
    if (slc_moves_rows(op)) return slc_row_op_check(comm, op);
    if (op->widen && (op->kind != SLC_REDUCE_SCATTER || op->dtype != SLUICE_BF16 || op->src == op->dst))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: only a reduce-scatter of bfloat16 into another buffer can widen",
                         slc_op_name(op));
    if (op->kind == SLC_COMPRESSED_EXCHANGE) return check_exchange(comm, op);
    if (op->kind == SLC_REDUCE_SCATTER && op->src_layout != SLC_WHOLE)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: a reduce-scatter reads a whole buffer", slc_op_name(op));
    if (op->kind == SLC_ALL_GATHER && op->dst_layout != SLC_WHOLE)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: an all-gather writes a whole buffer", slc_op_name(op));
    if (op->kind != SLC_ALL_REDUCE && op->kind != SLC_BROADCAST) return SLUICE_OK;
    if (op->src != op->dst || op->src_layout != SLC_WHOLE || op->dst_layout != SLC_WHOLE || op->accumulate)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: works in place on a whole buffer", slc_op_name(op));
    if (op->kind == SLC_BROADCAST && (op->root < 0 || op->root >= comm->size))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: root %d of %d ranks", slc_op_name(op), op->root, comm->size);
    return SLUICE_OK;
}

static sluice_status check_scratch(const slc_comm *comm, const slc_op *op)
{
    uint64_t longest = slc_least(op->block_elements, op->elements);
    uint64_t needed = slc_comm_scratch_bytes(comm, longest * sluice_dtype_bytes(op->dtype));
    if (needed <= comm->scratch.bytes) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "%s: needs %llu bytes of scratch, attached are %llu", slc_op_name(op),
                     (unsigned long long)needed, (unsigned long long)comm->scratch.bytes);
}

static sluice_status check_in_stream(const slc_op *op)
{
    if (op->kind <= SLC_COMPRESSED_EXCHANGE) return SLUICE_OK;
    return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: barriers and rows work in the host's memory only", slc_op_name(op));
}

static sluice_status check_operation(const slc_comm *comm, const slc_op *op)
{
    if (op->kind == SLC_CALL)
        return op->call ? SLUICE_OK : slc_error(SLUICE_ERR_ARGUMENT, "%s: nothing to call", slc_op_name(op));
    if (comm->stream_order.on && check_in_stream(op)) return SLUICE_ERR_UNSUPPORTED;
    if (op->kind == SLC_BARRIER) return SLUICE_OK;
    if (!comm->attached.stream.device) return slc_error(SLUICE_ERR_ORDER, "%s: attach memory first", slc_op_name(op));
    sluice_status status = check_shape(comm, op);
    if (!status) status = check_kind(comm, op);
    if (status) return status;
    if (slc_moves_rows(op)) return check_scratch(comm, op);

    uint64_t size = (uint64_t)comm->size, written = op->elements * sluice_dtype_bytes(slc_op_result(op));
    uint64_t read = op->elements * sluice_dtype_bytes(op->dtype);
    if (op->kind == SLC_COMPRESSED_EXCHANGE) written = slc_comm_exchange_bytes(comm, op->group);
    if (op->src_layout == SLC_SHARD) read /= size;
    if (op->dst_layout == SLC_SHARD) written /= size;
    if (!slc_in_arena(comm, op->src, read) || !slc_in_arena(comm, op->dst, written))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: its buffers are not in the attached arena", slc_op_name(op));
    return op->kind == SLC_REDUCE_SCATTER || op->kind == SLC_ALL_REDUCE ? check_scratch(comm, op) : SLUICE_OK;
}

uint64_t slc_comm_scratch_bytes(const slc_comm *comm, uint64_t block_bytes)
{
    const bool needed = comm->any_messages || comm->stream_order.on;
    return needed ? comm->depth * slc_scratch_slot_bytes(comm->size, block_bytes) : 0;
}

const void *slc_comm_place_at(const slc_comm *comm, int peer, const void *own)
{
    if (peer == comm->rank) return own;
    return slc_is_neighbour(comm->neighbours, peer) ? slc_at_neighbour(comm, peer, own) : NULL;
}

slc_op slc_exchange_op(const slc_compress_group *group, const void *packets, void *results, const slc_residue *servers)
{
    uint64_t bytes = group->shapes[0].ranks * group->stride;
    return (slc_op){.kind = SLC_COMPRESSED_EXCHANGE,
                    .dtype = SLUICE_UINT8,
                    .elements = bytes,
                    .block_elements = bytes,
                    .block_count = 1,
                    .src = packets,
                    .dst = results,
                    .group = group,
                    .servers = servers};
}

void slc_comm_notify(slc_comm *comm)
{
    slc_neighbours_wake_own(comm->neighbours);
}

sluice_status slc_comm_submit(slc_comm *comm, const slc_op *ops, size_t count, uint32_t *index)
{
    sluice_status status = slc_failure_get(comm->failure);
    uint32_t submitted = atomic_load_explicit(&comm->queue.counts.submitted, memory_order_relaxed);
    for (size_t i = 0; !status && i < count; i++) status = check_operation(comm, &ops[i]);
    if (status) return status;
    atomic_store_explicit(&comm->whole->program.submitter, slc_thread_number(), memory_order_relaxed);
    if (index) *index = submitted;
    for (size_t i = 0; i < count; i++) {
        bool full =
            submitted - atomic_load_explicit(&comm->queue.counts.completed.value, memory_order_acquire) >= SLC_QUEUE;
        if (full) {
            slc_comm_notify(comm);
            slc_queue_counts_wait(&comm->queue.counts, submitted + 1 - SLC_QUEUE, &comm->whole->program.waiter, 0);
            status = slc_failure_get(comm->failure);
            if (status) return status;
        }
        comm->queue.ops[submitted % SLC_QUEUE] = ops[i];
        if (ops[i].kind != SLC_CALL) atomic_fetch_add_explicit(&comm->queue.wire_submitted, 1, memory_order_relaxed);
        atomic_store_explicit(&comm->queue.counts.submitted, ++submitted, memory_order_release);
    }
    slc_comm_notify(comm);
    return SLUICE_OK;
}

void slc_comm_call(slc_comm *comm, const char *call, const char *object)
{
    slc_program_activity *program = &comm->whole->program;
    atomic_store_explicit(&program->call, call, memory_order_release);
    atomic_store_explicit(&program->object, object, memory_order_release);
    uint32_t calls = atomic_load_explicit(&program->calls, memory_order_relaxed);
    atomic_store_explicit(&program->calls, calls + 1, memory_order_relaxed);
}

void slc_comm_work(slc_comm *comm, const char *work)
{
    atomic_store_explicit(&comm->whole->program.work, work, memory_order_release);
    atomic_fetch_add_explicit(&comm->whole->program.calls, 1, memory_order_relaxed);
}

void slc_comm_end_names(slc_comm *comm)
{
    pthread_mutex_lock(&comm->whole->program.names);
    slc_comm_call(comm, "runtime_destroy", NULL);
    pthread_mutex_unlock(&comm->whole->program.names);
}

slc_gate *slc_comm_completed(slc_comm *comm)
{
    return &comm->queue.counts.completed;
}

sluice_status slc_comm_wait(slc_comm *comm, uint32_t index)
{
    slc_queue_counts_wait(&comm->queue.counts, index, &comm->whole->program.waiter, slc_thread_number());
    return slc_queue_counts_result(&comm->queue.counts, index, comm->failure);
}

sluice_status slc_comm_stream_wait(const slc_comm *comm, sluice_stream *stream, uint32_t count)
{
    return slc_lane_events_wait(&comm->attached.events, stream, count);
}

/* Notes that the calling thread waits for the device, so that heartbeats tell it. */
static void begin_host_wait(slc_comm *comm, uint32_t count)
{
    atomic_store(&comm->queue.counts.wanted, count);
    atomic_store(&comm->program.waiter, slc_thread_number());
    atomic_fetch_add(&comm->stream_order.host_waits, 1);
}

static sluice_status end_host_wait(slc_comm *comm, sluice_status status)
{
    atomic_fetch_sub(&comm->stream_order.host_waits, 1);
    const sluice_status failed = slc_failure_get(comm->failure);
    return failed ? failed : status;
}

sluice_status slc_comm_synchronize(slc_comm *comm, uint32_t count)
{
    if (!comm->stream_order.on) return slc_lane_events_synchronize(&comm->attached.events, count);
    begin_host_wait(comm, count);
    return end_host_wait(comm, slc_lane_events_synchronize(&comm->attached.events, count));
}

sluice_status slc_comm_stream_synchronize(slc_comm *comm, sluice_stream *stream, uint32_t count)
{
    if (!comm->stream_order.on) return slc_stream_synchronize(stream);
    begin_host_wait(comm, count);
    return end_host_wait(comm, slc_stream_synchronize(stream));
}

sluice_stream *slc_comm_stream(slc_comm *comm)
{
    return &comm->attached.stream;
}

uint64_t slc_comm_bytes_sent(const slc_comm *comm)
{
    return atomic_load_explicit(&comm->bytes_sent, memory_order_relaxed);
}

slc_comm_use slc_comm_used(const slc_comm *comm)
{
    return (slc_comm_use){slc_seconds(atomic_load_explicit(&comm->carried_ns, memory_order_relaxed)),
                          slc_seconds(atomic_load_explicit(&comm->late_ns, memory_order_relaxed)),
                          atomic_load_explicit(&comm->met, memory_order_relaxed)};
}
