/* A train begins where the ranks have met and is timed from there on, so that neither waking the caller nor the ranks'
 * different starts count: with a barrier, or with a short gather on devices that run ahead, which have no other way to
 * meet. Bytes that a bucket or a buffer lets pass faster than the link can go on pass in a train's first half; its
 * second half tells the time of an operation. measure_link_test.c covers this file. */
#include "lib/engine/measure/trains.h"

#include "lib/base/clock.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/plan/measured/fit_link.h"
#include "lib/engine/runtime.h"
#include "lib/kernels/adamw/adamw.h"

#include <stdlib.h>

enum { BATCH = 64, EMPTY_OPERATIONS = 64, REPETITIONS = 5 };

sluice_status slc_trains_begin(slc_measure_lab *l)
{
    slc_measure *m = l->m;
    if (!l->ahead || m->train_events) return SLUICE_OK;
    m->train_events = calloc(SLC_TRAIN_MAX + 1, sizeof *m->train_events);
    if (!m->train_events) return slc_error(SLUICE_ERR_MEMORY, "events of operations that are measured");
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i <= SLC_TRAIN_MAX; i++)
        status = slc_event_create(l->rt->device, &m->train_events[i]);
    return status;
}

static sluice_status note_completion(void *context)
{
    slc_measure *m = context;
    if (m->train_noted > SLC_TRAIN_MAX) return SLUICE_OK;
    const uint32_t number = m->train_noted++;
    if (m->train_events) return slc_event_record(m->train_stream, &m->train_events[number]);
    m->train_ns[number] = slc_clock_ns();
    return SLUICE_OK;
}

/* Updates made-up parameters: gradient, value and two states lie one after the other. */
static sluice_status update_piece(void *context)
{
    const slc_adamw_settings settings = slc_adamw_usual_settings();
    slc_measure *m = context;
    uint64_t count = m->piece_bytes / (4 * sizeof(float));
    float *at = m->pieces + m->piece++ % m->piece_count * 4 * count;
    const slc_adamw_range range = {
        .count = count, .gradient = at, .value = at + count, .exp_avg = at + 2 * count, .exp_avg_sq = at + 3 * count};
    sluice_status status = slc_adamw_many(m->piece_stream, &settings, 1, &range);
    return status ? status : note_completion(context);
}

static bool is_of_updates(const slc_measure_lab *l, const slc_train *train)
{
    return l->rt->size == 1 || train->kind == SLC_TRAIN_UPDATES;
}

/* Tells update_piece what to update; while a train runs, this is read by the communication thread. */
static void place_updates(const slc_measure_lab *l, uint64_t bytes)
{
    l->m->pieces = (float *)(void *)l->link;
    l->m->piece_bytes = bytes / 256 * 256;
    l->m->piece_count = l->link_bytes / bytes;
    l->m->piece_stream = &l->rt->updates;
}

/* Ranks with devices that run ahead meet there when they have gathered a grain. */
static slc_op make_begin(const slc_measure_lab *l, const slc_train *train)
{
    slc_op op = {.kind = SLC_BARRIER, .call = note_completion, .context = l->m, .what = "link measurement"};
    if (!l->ahead || l->rt->size == 1) return op;
    op.kind = SLC_ALL_GATHER;
    op.dtype = l->dtype;
    op.elements = op.block_elements = l->grain / sluice_dtype_bytes(l->dtype);
    op.block_count = 1;
    op.src = op.dst = l->link;
    op.alone = train->alone;
    return op;
}

static slc_op make_operation(const slc_measure_lab *l, const slc_train *train, uint32_t index)
{
    if (is_of_updates(l, train))
        return (slc_op){.kind = SLC_CALL, .call = update_piece, .context = l->m, .what = "update measurement"};
    bool reduction = train->kind == SLC_TRAIN_REDUCTIONS || (train->kind == SLC_TRAIN_BOTH && index % 2 == 0);
    uint64_t places = l->link_bytes / train->bytes;
    void *buffer = l->link + index % places * train->bytes;
    uint64_t elements = train->bytes / sluice_dtype_bytes(l->dtype), block = l->block_elements;
    return (slc_op){.kind = reduction ? SLC_REDUCE_SCATTER : SLC_ALL_GATHER,
                    .dtype = l->dtype,
                    .elements = elements,
                    .block_elements = block,
                    .block_count = (elements + block - 1) / block,
                    .src = buffer,
                    .dst = buffer,
                    .scale = 1,
                    .any_order = reduction && l->rt->config.sums == SLUICE_SUMS_NCCL,
                    .alone = train->alone,
                    .call = note_completion,
                    .context = l->m,
                    .what = "link measurement"};
}

/* Writes the bytes on this core, as gradients are written before a reduction. They are zero, so that no sum is slow. */
static sluice_status write_bytes(slc_measure_lab *l, uint64_t bytes)
{
    sluice_status status = slc_fill_zero(&l->rt->compute, l->link, bytes);
    return status ? status : slc_stream_synchronize(&l->rt->compute);
}

sluice_status slc_train_submit(slc_measure_lab *l, slc_train *train)
{
    uint64_t places = l->link_bytes / train->bytes;
    sluice_status status = write_bytes(l, slc_least(places, train->count) * train->bytes);
    if (!status && l->ahead) status = sluice_world_barrier(l->rt->world);
    if (status) return status;
    l->m->train_noted = 0;
    l->m->train_stream = is_of_updates(l, train) ? &l->rt->updates : slc_comm_stream(l->rt->comm);
    if (is_of_updates(l, train)) place_updates(l, train->bytes);
    slc_op ops[BATCH] = {make_begin(l, train)};
    train->first = l->rt->lanes.next_operation;
    uint32_t ready = 1;
    for (uint32_t i = 0; i < train->count; i++) {
        ops[ready] = make_operation(l, train, i);
        if (i == 0) {
            ops[ready].wait[0] = slc_comm_completed(l->rt->comm);
            ops[ready].wait_value[0] = l->rt->lanes.next_operation + 1; /* the begin is over */
        }
        if (++ready < BATCH && i + 1 < train->count) continue;
        status = slc_comm_submit(l->rt->comm, ops, ready, NULL);
        if (status) return status;
        l->rt->lanes.next_operation += ready;
        ready = 0;
    }
    return SLUICE_OK;
}

/* Waits for the operations before number `end`, and takes the times of `count` events. */
static sluice_status wait_for_events(slc_measure_lab *l, uint32_t end, uint32_t count)
{
    slc_measure *m = l->m;
    double seconds = 0;
    sluice_status status = slc_comm_wait(l->rt->comm, end);
    if (status || !m->train_events) return status;
    status = slc_comm_synchronize(l->rt->comm, end);
    /* Updates may have a stream of their own. */
    if (!status) status = slc_event_synchronize(&m->train_events[count - 1]);
    for (uint32_t i = 0; !status && i < count; i++) {
        status = slc_event_elapsed(&m->train_events[0], &m->train_events[i], &seconds);
        m->train_ns[i] = seconds > 0 ? (uint64_t)(1e9 * seconds) : 0;
    }
    return status;
}

sluice_status slc_train_wait(slc_measure_lab *l, const slc_train *train)
{
    return wait_for_events(l, train->first + train->count + 1, train->count + 1);
}

double slc_train_s(const slc_measure_lab *l, uint32_t from, uint32_t to)
{
    return slc_seconds(l->m->train_ns[to] - l->m->train_ns[from]);
}

sluice_status slc_train_run(slc_measure_lab *l, slc_train *train, double *seconds)
{
    double at_s[SLC_TRAIN_MAX + 1];
    *seconds = 0;
    sluice_status status = slc_train_submit(l, train);
    if (!status) status = slc_train_wait(l, train);
    if (status) return status;
    for (uint32_t i = 0; i <= train->count; i++) at_s[i] = slc_train_s(l, 0, i);
    *seconds = slc_fit_steady(at_s, train->count + 1);
    return SLUICE_OK;
}

sluice_status slc_train_run_together(slc_measure_lab *l, slc_train *train, double *seconds, double *took_s)
{
    double found[2];
    sluice_status status = slc_train_run(l, train, &found[0]);
    if (status) return status;
    found[1] = slc_train_s(l, 0, train->count);
    status = slc_measure_slowest(l->rt, found, 2);
    *seconds = found[0];
    *took_s = found[1];
    return status;
}

uint32_t slc_train_length(double seconds, double one_s, uint32_t least)
{
    double count = one_s > 0 ? seconds / one_s : SLC_TRAIN_MAX;
    return count < least ? least : count > SLC_TRAIN_MAX ? SLC_TRAIN_MAX : (uint32_t)count;
}

static sluice_status do_nothing(void *context)
{
    (void)context;
    return SLUICE_OK;
}

sluice_status slc_train_operation_s(slc_measure_lab *l, double *operation_s)
{
    double values[REPETITIONS];
    for (int r = 0; r < REPETITIONS; r++) {
        slc_op ops[EMPTY_OPERATIONS];
        uint32_t first;
        for (int i = 0; i < EMPTY_OPERATIONS; i++)
            ops[i] = (slc_op){.kind = SLC_CALL, .call = do_nothing, .context = l->m, .what = "link measurement"};
        ops[0].call = ops[EMPTY_OPERATIONS - 1].call = note_completion;
        l->m->train_noted = 0;
        l->m->train_stream = slc_comm_stream(l->rt->comm);
        sluice_status status = slc_comm_submit(l->rt->comm, ops, EMPTY_OPERATIONS, &first);
        if (status) return status;
        l->rt->lanes.next_operation = first + EMPTY_OPERATIONS;
        status = wait_for_events(l, first + EMPTY_OPERATIONS, 2);
        if (status) return status;
        values[r] = slc_train_s(l, 0, 1) / (EMPTY_OPERATIONS - 1);
    }
    *operation_s = slc_fit_median(values, REPETITIONS);
    return slc_measure_slowest(l->rt, operation_s, 1);
}
