/* An operation goes through groups: the calls of one are made at once, then nothing happens until the transport has put
 * them into the stream, then the kernels that need what arrived follow. stream_order_test.c covers this file. */
#include "lib/comm/lane/stream_order.h"

#include "lib/base/element.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/comm/lane/geometry.h"
#include "lib/comm/lane/scratch.h"
#include "lib/comm/lane/serve.h"
#include "lib/kernels/reduce/reduce.h"

#include <stdio.h>

static const uint64_t health_ns = 10000000u;     /* how often the transport is asked */
static const uint64_t patience_ns = 1500000000u; /* the control connections' time to explain what it says */
static const uint64_t look_ns = 50000u;          /* between two looks whether the device has done a group */

/* ---- Where things lie ---- */

static uint64_t part_at(const slc_comm *comm, const slc_op *op, slc_layout layout, uint64_t block, int rank)
{
    return slc_part_begin(op, layout, block, rank, comm->size);
}

/* Returns the scratch bytes for what arrives for one block of the operation: a part from every other rank. */
static uint64_t room_of_block(const slc_comm *comm, const slc_op *op)
{
    const uint64_t longest = slc_least(op->block_elements, op->elements);
    return slc_scratch_slot_bytes(comm->size, longest * sluice_dtype_bytes(op->dtype));
}

/* Returns the scratch in which a block's parts from the other ranks arrive. A sum that the transport has made takes
 * their place. */
static char *arrivals(const slc_comm *comm, const slc_active_op *active, uint64_t block)
{
    return comm->scratch.base + (block - active->block) * room_of_block(comm, &active->op);
}

/* Returns the scratch in which `peer`'s part of a block arrives. */
static char *arrival(const slc_comm *comm, const slc_active_op *active, uint64_t block, int peer)
{
    const uint64_t place = (uint64_t)(peer < comm->rank ? peer : peer - 1);
    return arrivals(comm, active, block) + place * (room_of_block(comm, &active->op) / (uint64_t)(comm->size - 1));
}

/* ---- What an operation consists of ---- */

/* True if one call of the transport makes all of the sum in place. Sums of integers are exact in any order. */
static bool sums_in_one_call(const slc_op *op)
{
    return op->kind == SLC_ALL_REDUCE && (op->any_order || op->dtype == SLUICE_INT64);
}

/* True if the transport's sums of parts are written where they belong. */
static bool sums_into_place(const slc_op *op)
{
    return op->kind == SLC_REDUCE_SCATTER && op->any_order && !op->accumulate && slc_op_result(op) == op->dtype;
}

static bool sums_through_scratch(const slc_op *op)
{
    return (op->kind == SLC_REDUCE_SCATTER && !sums_into_place(op)) ||
           (op->kind == SLC_ALL_REDUCE && !sums_in_one_call(op));
}

/* True if the operation gathers in this step. An all-reduce in rank order gathers the parts in its second step, once
 * all of them are summed. */
static bool gathers_now(const slc_active_op *active)
{
    return active->op.kind == SLC_ALL_GATHER || active->step == 1;
}

/* The first block that the next group does not move: it moves as many as the scratch has room for. */
static uint64_t end_of_group(const slc_comm *comm, const slc_active_op *active)
{
    if (!sums_through_scratch(&active->op) || gathers_now(active)) return active->end_block;
    return slc_least(active->end_block, active->block + comm->scratch.bytes / room_of_block(comm, &active->op));
}

/* ---- The calls of a group ---- */

static sluice_status call_exchange(slc_comm *comm, const slc_active_op *active, uint64_t block)
{
    const sluice_transport_collectives_v2 *calls = comm->transport->collectives;
    void *self = comm->transport->self;
    const slc_op *op = &active->op;
    const uint64_t count = slc_part_length(op, block, comm->size);
    sluice_status status = SLUICE_OK;
    for (int i = 1; !status && i < comm->size; i++) {
        const int to = (comm->rank + i) % comm->size, from = (comm->rank + comm->size - i) % comm->size;
        status = calls->send(self, to, slc_element(op->src, op->dtype, part_at(comm, op, SLC_WHOLE, block, to)), count,
                             op->dtype);
        if (!status) status = calls->receive(self, from, arrival(comm, active, block, from), count, op->dtype);
    }
    return status;
}

/* Returns where this rank's part of a block's sum goes. */
static void *part_of_sum(const slc_comm *comm, const slc_op *op, uint64_t block)
{
    return slc_element(op->dst, slc_op_result(op), part_at(comm, op, op->dst_layout, block, comm->rank));
}

static sluice_status call_reduce_scatter(slc_comm *comm, const slc_active_op *active, uint64_t block)
{
    const slc_op *op = &active->op;
    void *to = sums_into_place(op) ? part_of_sum(comm, op, block) : arrivals(comm, active, block);
    return comm->transport->collectives->reduce_scatter(comm->transport->self,
                                                        slc_element(op->src, op->dtype, block * op->block_elements), to,
                                                        slc_part_length(op, block, comm->size), op->dtype);
}

static sluice_status call_gather(slc_comm *comm, const slc_active_op *active, uint64_t block)
{
    const slc_op *op = &active->op;
    const void *own = op->kind == SLC_ALL_REDUCE ? op->dst : op->src;
    return comm->transport->collectives->all_gather(
        comm->transport->self, slc_element(own, op->dtype, part_at(comm, op, op->src_layout, block, comm->rank)),
        slc_element(op->dst, op->dtype, block * op->block_elements), slc_part_length(op, block, comm->size), op->dtype);
}

/* Calls the first group of a compressed exchange: each rank gets the packets of its chunk. */
static sluice_status call_packets(slc_comm *comm, const slc_op *op)
{
    const sluice_transport_collectives_v2 *calls = comm->transport->collectives;
    void *self = comm->transport->self;
    const slc_compress_group *group = op->group;
    sluice_status status = SLUICE_OK;
    for (int i = 1; group->packet_bytes && !status && i < comm->size; i++) {
        const int to = (comm->rank + i) % comm->size, from = (comm->rank + comm->size - i) % comm->size;
        const char *packet = (const char *)op->src + (uint64_t)to * group->stride;
        status = calls->send(self, to, packet, group->packet_bytes, SLUICE_UINT8);
        if (!status)
            status = calls->receive(self, from, slc_exchange_arrival(op, from), group->packet_bytes, SLUICE_UINT8);
    }
    return status;
}

/* Calls the second group of a compressed exchange: all ranks get every owner's results. */
static sluice_status call_results(slc_comm *comm, const slc_op *op)
{
    char *results = op->dst;
    if (!op->group->packet_bytes) return SLUICE_OK;
    return comm->transport->collectives->all_gather(comm->transport->self,
                                                    results + (uint64_t)comm->rank * op->group->stride, results,
                                                    op->group->stride, SLUICE_UINT8);
}

/* The operation's blocks follow each other in a whole buffer. */
static sluice_status call_in_place(slc_comm *comm, const slc_op *op)
{
    const sluice_transport_collectives_v2 *calls = comm->transport->collectives;
    char *data = slc_element(op->dst, op->dtype, op->first_block * op->block_elements);
    if (op->kind == SLC_BROADCAST)
        return calls->broadcast(comm->transport->self, data, slc_op_length(op), op->dtype, op->root);
    return calls->all_reduce(comm->transport->self, data, data, slc_op_length(op), op->dtype);
}

static sluice_status call_all(slc_comm *comm, const slc_active_op *active, uint64_t end)
{
    const slc_op *op = &active->op;
    sluice_status status = SLUICE_OK;
    if (op->kind == SLC_COMPRESSED_EXCHANGE) return active->step ? call_results(comm, op) : call_packets(comm, op);
    if (op->kind == SLC_BROADCAST || sums_in_one_call(op)) return call_in_place(comm, op);
    for (uint64_t block = active->block; !status && block < end; block++)
        status = gathers_now(active) ? call_gather(comm, active, block)
                 : op->any_order     ? call_reduce_scatter(comm, active, block)
                                     : call_exchange(comm, active, block);
    return status;
}

/* ---- The kernels after a group ---- */

/* Puts the sum of a block's contributions into this rank's part. */
static sluice_status add_up(slc_comm *comm, const slc_active_op *active, uint64_t block)
{
    const slc_op *op = &active->op;
    const uint64_t count = slc_part_length(op, block, comm->size);
    const void **from = comm->work.sources;
    void *to = part_of_sum(comm, op, block);
    const uint32_t sources = op->any_order ? 1 : (uint32_t)comm->size;
    if (op->any_order)
        from[0] = arrivals(comm, active, block);
    else
        for (int rank = 0; rank < comm->size; rank++)
            from[rank] = rank == comm->rank ? slc_element(op->src, op->dtype, part_at(comm, op, SLC_WHOLE, block, rank))
                                            : arrival(comm, active, block, rank);
    if (op->dtype == SLUICE_FP64)
        return slc_reduce_float64(&comm->attached.stream, count, (const double *const *)from, sources,
                                  (double *const *)&to, 1);
    const slc_reduce_args args = {.count = count,
                                  .from = op->dtype,
                                  .to = slc_op_result(op),
                                  .sources = from,
                                  .source_count = sources,
                                  .destination_count = 1,
                                  .destinations = &to,
                                  .scale = op->scale,
                                  .accumulate = op->accumulate};
    return slc_reduce(&comm->attached.stream, &args);
}

/* Scales a sum that the transport has made in place: `count` elements of it. */
static sluice_status scale_in_place(slc_comm *comm, const slc_op *op, void *data, uint64_t count)
{
    if ((op->dtype != SLUICE_FP32 && op->dtype != SLUICE_BF16) || op->scale == 1) return SLUICE_OK;
    const slc_reduce_args args = {.count = count,
                                  .from = op->dtype,
                                  .to = op->dtype,
                                  .sources = (const void *const *)&data,
                                  .source_count = 1,
                                  .destination_count = 1,
                                  .destinations = &data,
                                  .scale = op->scale};
    return slc_reduce(&comm->attached.stream, &args);
}

/* Scales what the transport's sums have made of the operation, where it is. */
static sluice_status scale_sums(slc_comm *comm, const slc_active_op *active)
{
    const slc_op *op = &active->op;
    sluice_status status = SLUICE_OK;
    if (sums_in_one_call(op))
        return scale_in_place(comm, op, slc_element(op->dst, op->dtype, op->first_block * op->block_elements),
                              slc_op_length(op));
    for (uint64_t block = active->block; sums_into_place(op) && !status && block < comm->stream_order.end; block++)
        status = scale_in_place(comm, op, part_of_sum(comm, op, block), slc_part_length(op, block, comm->size));
    return status;
}

/* Issues the kernels, and turns to the next group, or ends the operation. */
static sluice_status follow_group(slc_comm *comm, slc_active_op *active)
{
    const slc_op *op = &active->op;
    if (op->kind == SLC_COMPRESSED_EXCHANGE && !active->step) {
        active->step = 1;
        return slc_exchange_serve(&comm->attached.stream, op, comm->rank);
    }
    const bool sums = sums_through_scratch(op) && !gathers_now(active);
    sluice_status status = scale_sums(comm, active);
    for (uint64_t block = active->block; sums && !status && block < comm->stream_order.end; block++)
        status = add_up(comm, active, block);
    active->block = comm->stream_order.end;
    if (active->block < active->end_block) return status;
    if (sums && op->kind == SLC_ALL_REDUCE) {
        active->block = op->first_block;
        active->step = 1;
    } else {
        active->work_done = true;
    }
    return status;
}

/* ---- Trouble ---- */

/* Keeps an error of the transport that a broken peer or connection may have caused. It fails the world only after the
 * control connections have had time to name the cause. */
static void note_trouble(slc_comm *comm, sluice_status status, uint64_t now_ns)
{
    slc_stream_order *order = &comm->stream_order;
    if (order->ill_ns) return;
    order->ill_ns = now_ns;
    order->ill = status;
    snprintf(order->ill_line, sizeof order->ill_line, "%s", sluice_last_error());
}

static void take_error(slc_comm *comm, const slc_op *op, sluice_status status, uint64_t now_ns)
{
    if (status == SLUICE_ERR_PEER || status == SLUICE_ERR_SYSTEM || status == SLUICE_ERR_INTERRUPTED)
        note_trouble(comm, status, now_ns);
    else
        slc_op_fail(comm, op, status);
}

void slc_stream_order_check(slc_comm *comm, uint64_t now_ns)
{
    slc_stream_order *order = &comm->stream_order;
    if (!atomic_load_explicit(&order->attached, memory_order_acquire) || slc_failed(comm->failure)) return;
    if (!order->ill_ns && now_ns >= order->asked_ns + health_ns) {
        order->asked_ns = now_ns;
        const sluice_status status = comm->transport->collectives->health(comm->transport->self);
        if (status) note_trouble(comm, status, now_ns);
    }
    if (order->ill_ns && now_ns >= order->ill_ns + patience_ns)
        slc_failure_set(comm->failure, order->ill, SLC_TELL_OWN, "%s", order->ill_line);
}

void slc_stream_order_abort(slc_comm *comm)
{
    if (comm->stream_order.on && slc_transport_has_collectives(comm->transport))
        comm->transport->collectives->abort(comm->transport->self);
}

/* ---- Steps ---- */

static sluice_status begin_group(slc_comm *comm, slc_active_op *active)
{
    const sluice_transport_collectives_v2 *calls = comm->transport->collectives;
    void *self = comm->transport->self;
    slc_stream_order *order = &comm->stream_order;
    order->end = end_of_group(comm, active);
    sluice_status status = calls->group_begin(self);
    if (status) return status;
    status = call_all(comm, active, order->end);
    const sluice_status ended = calls->group_end(self);
    if (status || ended < 0) return status ? status : ended;
    order->stage = SLC_GROUP_LAUNCHING;
    return SLUICE_OK;
}

/* Called once a group is launched. An operation that is alone then waits until the device has done it. */
static sluice_status note_launched(slc_comm *comm, const slc_op *op)
{
    slc_stream_order *order = &comm->stream_order;
    order->stage = op->alone ? SLC_GROUP_ALONE : SLC_GROUP_LAUNCHED;
    return op->alone ? slc_event_record(&comm->attached.stream, &order->done) : SLUICE_OK;
}

bool slc_stream_order_step(slc_comm *comm, slc_active_op *active, uint64_t now_ns)
{
    slc_stream_order *order = &comm->stream_order;
    if (active->skipped) active->work_done = true;
    if (active->work_done || order->ill_ns) return false;
    sluice_status status = SLUICE_OK;
    order->look_ns = 0;
    switch (order->stage) {
    case SLC_GROUP_NONE: status = begin_group(comm, active); break;
    case SLC_GROUP_LAUNCHING:
        status = comm->transport->collectives->launched(comm->transport->self);
        if (status == SLUICE_IN_PROGRESS) return false;
        if (!status) status = note_launched(comm, &active->op);
        break;
    case SLC_GROUP_ALONE:
        if (slc_event_done(&order->done)) {
            order->stage = SLC_GROUP_LAUNCHED;
            break;
        }
        order->look_ns = now_ns + look_ns;
        return false;
    case SLC_GROUP_LAUNCHED:
        order->stage = SLC_GROUP_NONE;
        status = follow_group(comm, active);
        break;
    }
    if (status) take_error(comm, &active->op, status, now_ns);
    return true;
}

uint64_t slc_stream_order_due(const slc_comm *comm)
{
    return comm->stream_order.look_ns ? comm->stream_order.look_ns : UINT64_MAX;
}

/* ---- The stream ---- */

sluice_status slc_stream_order_attach(slc_comm *comm)
{
    slc_stream_order *order = &comm->stream_order;
    void *stream = slc_stream_native(&comm->attached.stream);
    sluice_status status = slc_event_create(comm->attached.stream.device, &order->done);
    if (!status) status = comm->transport->collectives->attach(comm->transport->self, stream);
    /* A rank that died is named by the world's failure, which has ended the wait. */
    if (status && slc_failed(comm->failure)) return slc_failure_get(comm->failure);
    atomic_store_explicit(&order->attached, !status, memory_order_release);
    return status;
}

void slc_stream_order_detach(slc_comm *comm)
{
    slc_stream_order *order = &comm->stream_order;
    if (atomic_exchange(&order->attached, false))
        (void)comm->transport->collectives->attach(comm->transport->self, NULL);
    slc_event_destroy(&order->done);
    order->stage = SLC_GROUP_NONE;
}
