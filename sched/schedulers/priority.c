/* Schedules as ByteScheduler does (Peng et al., SOSP 2019; bytescheduler/common/bytecore.py): units are cut into
 * partitions, and whenever the link has credit, the ready partition goes that compute needs first. Lower layers go
 * before upper ones, whose operations may still run in the next step's forward. A plan is one fixed order, so the queue
 * is run here with the given times, as if nothing slowed anything else down: two steps to warm up, then the step that
 * becomes the order. That step leaves over exactly the operations that it found left over, so that it can follow
 * itself. schedulers_test.c covers this file. */
#include "lib/plan/strategy_table.h"
#include "sched/scheduler.h"
#include "sched/schedulers/partition.h"

#include <math.h>
#include <stdlib.h>

/* ByteScheduler's defaults: partitions of 1M elements, of which 4 are unacknowledged. OPEN operations may be under way,
 * as in the engine. */
enum { PARTITION_BYTES = 4000000, CREDIT_PARTITIONS = 4, OPEN = 8, WARM_UP = 2 };

static const double MOST_PARTITION_BYTES = 1 << 30;

enum { REDUCE, INSPECT, COMPRESS, EXCHANGE, GATHER_GRADIENT, UPDATE, GATHER_VALUE, STAGES };

/* The operations that a unit's gradient passes through, run by run. A unit has at most one gradient under way: the next
 * one grows only when the values that this one gives are in use. */
typedef struct {
    slc_item_kind kinds[STAGES]; /* SLC_ITEM_KINDS: the unit has no such stage */
    int agreed;                  /* the last stage that the agreement waits for */
    uint64_t run_blocks;
    uint32_t runs, first_slot, last_slot; /* first and last slot that add to the gradient */
    uint64_t step;
    uint32_t micro_batch;
    uint32_t issued[STAGES], over[STAGES];
    uint32_t in_time[STAGES]; /* runs that belong to their own step's pass; the others are late */
} chain;

typedef struct {
    uint32_t unit, index;
    uint64_t first, last; /* slots, counted from the very first step */
    uint32_t issued, over;
    bool listed; /* among the open windows */
} window;

typedef struct {
    slc_item_kind kind;
    uint32_t unit, index, micro_batch, run, stage;
    uint64_t step, position; /* slots before it in the order, counted from the very first step */
    uint64_t bytes;
    double end_s;
} operation;

typedef struct {
    const slc_scheduling *in;
    const slc_job *job;
    const slc_times *times;
    uint64_t partition_bytes;
    bool splits;                 /* some parameter is split by its uses */
    uint64_t slots_a_step, step; /* number of the current step; the last one is written down */
    chain *chains;
    bool *busy;      /* [units] true while the chain's gradient is under way */
    window *windows; /* by units */
    uint32_t window_count;
    uint32_t *first_window; /* [units + 1] where each unit's windows begin */
    slc_layer_users users;
    uint32_t *open, open_count;               /* windows that may be issued, and some that are all issued */
    operation *lane;                          /* operations in order, from the very first step */
    size_t lane_count, lane_over, lane_first; /* all; those that have ended; the first of `step` */
    bool last;                                /* the current step is the one that is written down */
    uint64_t begun, over; /* slots that have begun, that have ended, counted from the very first step */
    double now_s, slot_end_s, link_free_s, thread_free_s;
    int64_t credit;
    uint64_t agree_next, agree_over; /* numbers of steps: agreement to issue next; agreements that have ended */
    bool agree_in_time;
    uint64_t runs_reduced, runs_to_reduce; /* runs that the next agreement waits for */
} queue;

static bool is_busy(const queue *q, const chain *c)
{
    return q->busy[c - q->chains];
}

static bool is_last_micro_batch(const queue *q, const chain *c)
{
    return c->micro_batch + 1 == q->job->micro_batches;
}

/* ---- Units and windows ---- */

static void chain_init(queue *q, uint32_t u)
{
    const slc_unit *unit = &q->job->units[u];
    slc_unit_operations of = slc_operations_of(q->job, unit, q->in->strategies[u]);
    chain *c = &q->chains[u];
    uint64_t block = sluice_dtype_bytes(unit->dtype) * unit->block_elements;
    bool whole = of.compress != SLC_ITEM_KINDS;
    *c = (chain){
        .kinds = {of.reduce, of.inspect, of.compress, of.exchange, of.gather_gradient, of.update, of.gather_value},
        .run_blocks = whole ? slc_unit_blocks(unit) : (q->partition_bytes + block - 1) / block};
    if (!c->run_blocks) c->run_blocks = 1;
    for (int s = 0; s < STAGES; s++)
        if (c->kinds[s] != SLC_ITEM_KINDS && slc_precedes_agreement(q->job, c->kinds[s])) c->agreed = s;
    c->runs = (uint32_t)((slc_unit_blocks(unit) + c->run_blocks - 1) / c->run_blocks);
    slc_unit_gradient_slots(q->job, unit, &c->first_slot, &c->last_slot);
    if (unit->trainable) q->runs_to_reduce += c->runs;
}

static void windows_init(queue *q, uint32_t u)
{
    slc_window w;
    q->first_window[u] = q->window_count;
    for (uint32_t i = 0; slc_operations_of(q->job, &q->job->units[u], q->in->strategies[u]).windows &&
                         slc_unit_window(q->job, &q->job->units[u], true, i, &w);
         i++)
        q->windows[q->window_count++] = (window){u, i, w.first_slot, w.last_slot, 0, 0, false};
    q->first_window[u + 1] = q->window_count;
}

static void open_window(queue *q, uint32_t w)
{
    if (q->windows[w].first > q->begun || q->windows[w].listed) return;
    q->windows[w].listed = true;
    q->open[q->open_count++] = w;
}

/* Opens the windows that begin at the slot that comes next: none is gathered before the slot ahead of its first. */
static void open_windows(queue *q)
{
    const uint32_t layer = slc_slot_layer(q->job, (uint32_t)(q->begun % slc_job_slots(q->job)));
    for (uint32_t k = q->users.first[layer]; k < q->users.first[layer + 1]; k++)
        for (uint32_t w = q->first_window[q->users.units[k]]; w < q->first_window[q->users.units[k] + 1]; w++)
            open_window(q, w);
}

static size_t most_operations(const queue *q)
{
    size_t a_step = 1, m = q->job->micro_batches;
    for (uint32_t u = 0; u < q->job->unit_count; u++) a_step += (m + STAGES) * q->chains[u].runs;
    for (uint32_t w = 0; w < q->window_count; w++) a_step += m * q->chains[q->windows[w].unit].runs;
    return (WARM_UP + 1) * a_step;
}

uint64_t slc_partition_bytes(const slc_job *job, const slc_times *times)
{
    if (!times) return PARTITION_BYTES;
    const slc_link_line *line = &times->link.reduce_scatter;
    uint64_t measured = times->link.block_bytes ? times->link.block_bytes : PARTITION_BYTES;
    double saturating = 19 * line->latency_s * job->world * line->bytes_per_s;
    return saturating > (double)measured && saturating < MOST_PARTITION_BYTES ? (uint64_t)saturating : measured;
}

static bool queue_init(queue *q, const slc_scheduling *in, const slc_times *times)
{
    const slc_job *job = in->job;
    uint64_t partition = slc_partition_bytes(job, in->times);
    size_t most_windows = 1;
    for (uint32_t u = 0; u < job->unit_count; u++) most_windows += 2 * (size_t)job->units[u].use_count;
    *q = (queue){.in = in,
                 .job = job,
                 .times = times,
                 .partition_bytes = partition,
                 .splits = slc_job_splits(job),
                 .slots_a_step = (uint64_t)job->micro_batches * slc_job_slots(job),
                 .credit = (int64_t)(CREDIT_PARTITIONS * partition),
                 .chains = calloc((size_t)job->unit_count + 1, sizeof *q->chains),
                 .busy = calloc((size_t)job->unit_count + 1, sizeof *q->busy),
                 .windows = calloc(most_windows, sizeof *q->windows),
                 .open = calloc(most_windows, sizeof *q->open),
                 .first_window = calloc((size_t)job->unit_count + 1, sizeof *q->first_window)};
    if (!q->chains || !q->busy || !q->windows || !q->open || !q->first_window) return false;
    if (!slc_layer_users_init(&q->users, job)) return false;
    for (uint32_t u = 0; u < job->unit_count; u++) chain_init(q, u);
    for (uint32_t u = 0; u < job->unit_count; u++) windows_init(q, u);
    open_windows(q);
    q->lane = calloc(most_operations(q), sizeof *q->lane);
    return q->lane != NULL;
}

static void queue_fini(queue *q)
{
    free(q->lane);
    slc_layer_users_fini(&q->users);
    free(q->first_window);
    free(q->open);
    free(q->windows);
    free(q->busy);
    free(q->chains);
}

/* ---- From one step to the next ---- */

/* Begins the next step. Operations that have not ended by now are late. If the step begins with a gather, every
 * operation issued so far is before that gather in the order, so only those that are not issued are late. */
static void next_step(queue *q, bool with_gather)
{
    for (uint32_t u = 0; u < q->job->unit_count; u++) {
        chain *c = &q->chains[u];
        for (int s = 0; s < STAGES; s++)
            c->in_time[s] = !q->busy[u] ? c->runs : with_gather ? c->issued[s] : c->over[s];
    }
    q->agree_in_time = (with_gather ? q->agree_next : q->agree_over) > q->step;
    q->lane_first = with_gather ? q->lane_count : q->lane_over;
    q->step++;
}

/* ---- A parameter split by its uses ---- */

/* True if the unit's partner does not hold this stage of the unit up. The reduction of rows comes after that of their
 * parameter's other gradients, and the parameter is updated after both. All of it is updated before its values are
 * gathered, because the next step's rows are needed first. */
static bool partner_is_ready(const queue *q, const chain *c, int stage)
{
    const slc_unit *unit = &q->job->units[c - q->chains];
    if (slc_role_of(unit)->partner_reads_first && stage == GATHER_VALUE) return c->over[UPDATE] == c->runs;
    const slc_partner_wait *wait = slc_partner_wait_of(unit, c->kinds[stage]);
    if (!wait || wait->when != SLC_SAME_MICRO_BATCH) return true;
    const chain *partner = &q->chains[unit->partner];
    return c->step == partner->step && c->micro_batch == partner->micro_batch && partner->over[REDUCE] == partner->runs;
}

/* Returns true if all SPLIT units have been updated in this step, with `or_issued` also if their updates have only been
 * issued. These are never late. */
static bool splits_are_updated(const queue *q, bool or_issued)
{
    for (uint32_t u = 0; q->splits && u < q->job->unit_count; u++) {
        const chain *c = &q->chains[u];
        if (slc_role_of(&q->job->units[u])->partner_reads_first && q->job->units[u].trainable &&
            (or_issued ? c->issued : c->over)[UPDATE] < c->runs)
            return false;
    }
    return true;
}

/* A table of rows is gathered from the whole updated parameter, with lists that the caller makes between
 * micro-batches. */
static bool rows_may_come(const queue *q, const window *w)
{
    const chain *rows = &q->chains[w->unit], *split = &q->chains[q->job->units[w->unit].partner];
    bool old = is_busy(q, split) && split->step < w->first / q->slots_a_step && split->over[UPDATE] < split->runs;
    return !old && !is_busy(q, rows) && q->over >= w->first - w->first % slc_job_slots(q->job);
}

/* ---- Slots ---- */

static bool values_are_there(const queue *q, uint32_t u)
{
    const chain *c = &q->chains[u];
    for (uint32_t w = q->first_window[u]; w < q->first_window[u + 1] && slc_gathers_windows(q->in->strategies[u]);
         w++) {
        const window *at = &q->windows[w];
        if (at->first <= q->begun && q->begun <= at->last) return at->over == c->runs;
    }
    return !(q->busy[u] && is_last_micro_batch(q, c));
}

static bool slot_may_begin(const queue *q)
{
    uint32_t slot = (uint32_t)(q->begun % slc_job_slots(q->job)), layer = slc_slot_layer(q->job, slot);
    bool forward = slc_slot_is_forward(q->job, slot);
    bool next = q->begun == (q->step + 1) * q->slots_a_step;
    if (q->begun > q->over || (next && (q->last || q->agree_over < q->step + !q->runs_to_reduce))) return false;
    if (next && !splits_are_updated(q, false)) return false;
    for (uint32_t k = q->users.first[layer]; k < q->users.first[layer + 1]; k++)
        for (uint32_t u = q->users.units[k], i = 0; i < q->job->units[u].use_count; i++) {
            const slc_use *use = &q->job->units[u].uses[i];
            if (use->layer != layer) continue;
            if ((forward || use->backward_value) && !values_are_there(q, u)) return false;
            if (!forward && q->job->units[u].trainable && q->busy[u]) return false;
        }
    return true;
}

static void begin_slot(queue *q)
{
    if (q->begun == (q->step + 1) * q->slots_a_step) next_step(q, false);
    uint32_t slot = (uint32_t)(q->begun % slc_job_slots(q->job));
    q->slot_end_s = q->now_s + slc_slot_s(q->job, q->times, q->in->recompute, slot);
    q->begun++;
    open_windows(q);
}

static void end_slot(queue *q)
{
    uint32_t slots = slc_job_slots(q->job), slot = (uint32_t)(q->over % slots);
    uint32_t m = (uint32_t)(q->over % q->slots_a_step / slots), layer = slc_slot_layer(q->job, slot);
    for (uint32_t k = q->users.first[layer]; k < q->users.first[layer + 1]; k++) {
        const uint32_t u = q->users.units[k];
        for (uint32_t i = q->first_window[u]; i < q->first_window[u + 1]; i++) {
            window *w = &q->windows[i];
            if (w->last != q->over) continue;
            *w = (window){u, w->index, w->first + slots, w->last + slots, 0, 0, w->listed};
            open_window(q, i);
        }
        if (!slc_reduced_after(q->job, &q->job->units[u], m, slot)) continue;
        chain *c = &q->chains[u];
        q->busy[u] = true;
        c->step = q->step;
        c->micro_batch = m;
        for (int s = 0; s < STAGES; s++) c->issued[s] = c->over[s] = 0;
    }
    q->over++;
}

/* ---- Operations ---- */

static int stage_before(const chain *c, int stage)
{
    for (int s = stage - 1; s >= 0; s--)
        if (c->kinds[s] != SLC_ITEM_KINDS) return s;
    return -1;
}

static bool stage_is_ready(const queue *q, const chain *c, int stage)
{
    uint32_t run = c->issued[stage],
             end = q->last && c->step == q->step && !q->job->barrier ? c->in_time[stage] : c->runs;
    if (c->kinds[stage] == SLC_ITEM_KINDS || (stage != REDUCE && !is_last_micro_batch(q, c))) return false;
    if (is_last_micro_batch(q, c) ? run >= end : run >= c->runs) return false;
    if (stage <= c->agreed && q->agree_next != c->step) return false; /* one agreement at a time */
    bool after_agreement = stage > c->agreed && stage <= UPDATE && stage != GATHER_GRADIENT;
    if (after_agreement && slc_waits_for_agreement(q->job, q->in->strategies[c - q->chains]) &&
        q->agree_over <= c->step)
        return false;
    if (!partner_is_ready(q, c, stage)) return false;
    int before = stage_before(c, stage);
    return before < 0 || c->over[before] > run;
}

static bool window_is_ready(const queue *q, const window *w)
{
    const chain *c = &q->chains[w->unit];
    bool next = w->first >= (q->step + 1) * q->slots_a_step;
    if (w->issued == c->runs || (next && (q->last || !splits_are_updated(q, true)))) return false;
    if (slc_looks_up(&q->job->units[w->unit]) && !rows_may_come(q, w)) return false;
    if (w->first % q->slots_a_step ? q->begun < w->first : q->over < w->first) return false; /* one slot ahead */
    return !(is_busy(q, c) && is_last_micro_batch(q, c)) || c->over[UPDATE] > w->issued;
}

static bool agreement_is_ready(const queue *q)
{
    if (q->agree_next > q->step || (q->last && q->agree_next == q->step && !q->agree_in_time && !q->job->barrier))
        return false;
    return q->runs_to_reduce ? q->runs_reduced == q->runs_to_reduce : q->over >= (q->agree_next + 1) * q->slots_a_step;
}

/* The slot that waits for a unit's gradient to pass through. */
static uint64_t needed_by(const queue *q, uint32_t u)
{
    const chain *c = &q->chains[u];
    const slc_unit *unit = &q->job->units[u];
    uint64_t slots = slc_job_slots(q->job);
    if (c->issued[UPDATE] < c->runs) unit = slc_first_reader(q->job, unit);
    if (is_last_micro_batch(q, c)) return (c->step + 1) * q->slots_a_step + unit->uses[0].layer;
    return c->step * q->slots_a_step + (c->micro_batch + 1) * slots + c->first_slot;
}

static void push_operation(queue *q, operation op, double seconds)
{
    bool computes = slc_is_on_thread(op.kind), thread = computes || q->times->link.thread_moves;
    double *free_s = thread ? &q->thread_free_s : &q->link_free_s;
    double end_s = fmax(q->now_s, *free_s) + seconds;
    *free_s = end_s;
    /* Operations end in order. */
    if (q->lane_count > q->lane_over) end_s = fmax(end_s, q->lane[q->lane_count - 1].end_s);
    op.end_s = end_s;
    op.position = q->over; /* a gather's memory is claimed while this slot runs */
    if (!computes) q->credit -= (int64_t)op.bytes;
    q->lane[q->lane_count++] = op;
}

static uint64_t run_elements(const queue *q, uint32_t u, uint32_t run)
{
    const chain *c = &q->chains[u];
    return slc_run_elements(&q->job->units[u], run * c->run_blocks, c->run_blocks);
}

static void issue_stage(queue *q, uint32_t u, int stage)
{
    chain *c = &q->chains[u];
    const slc_unit *unit = &q->job->units[u];
    uint32_t run = c->issued[stage]++;
    uint64_t elements = run_elements(q, u, run);
    slc_item item = {c->kinds[stage], .unit = u, .first_block = run * c->run_blocks, .block_count = c->run_blocks};
    push_operation(q,
                   (operation){.kind = c->kinds[stage],
                               .unit = u,
                               .micro_batch = c->micro_batch,
                               .run = run,
                               .stage = (uint32_t)stage,
                               .step = c->step,
                               .bytes = slc_operation_bytes(q->job, unit, c->kinds[stage], elements)},
                   slc_item_s(q->job, q->times, q->in->strategies, &item));
}

static void issue_window(queue *q, window *w)
{
    if (w->first >= (q->step + 1) * q->slots_a_step) next_step(q, true);
    const slc_unit *unit = &q->job->units[w->unit];
    uint32_t run = w->issued++;
    uint64_t elements = run_elements(q, w->unit, run);
    push_operation(q,
                   (operation){.kind = SLC_ITEM_GATHER_WINDOW,
                               .unit = w->unit,
                               .index = w->index,
                               .micro_batch = (uint32_t)(w->first % q->slots_a_step / slc_job_slots(q->job)),
                               .run = run,
                               .step = q->step,
                               .bytes = slc_operation_bytes(q->job, unit, SLC_ITEM_GATHER_WINDOW, elements)},
                   slc_operation_s(q->job, q->times, SLC_ITEM_GATHER_WINDOW, unit, elements));
}

static void issue_agreement(queue *q)
{
    uint64_t step = q->agree_next++;
    q->runs_reduced = 0;
    push_operation(
        q,
        (operation){.kind = SLC_ITEM_AGREE, .unit = SLC_NONE, .micro_batch = q->job->micro_batches - 1, .step = step},
        slc_operation_s(q->job, q->times, SLC_ITEM_AGREE, NULL, 0));
}

/* Returns the open window that is needed first of those that may be gathered, of several that of the first unit; NULL:
 * there is none. Windows of which everything is issued are dropped from the list. */
static window *first_ready(queue *q)
{
    window *found = NULL;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < q->open_count; k++) {
        window *w = &q->windows[q->open[k]];
        w->listed = w->issued < q->chains[w->unit].runs;
        if (!w->listed) continue;
        q->open[kept++] = q->open[k];
        if (found && (w->first != found->first ? w->first > found->first : w > found)) continue;
        if (window_is_ready(q, w)) found = w;
    }
    q->open_count = kept;
    return found;
}

/* Issues the operation that is needed first, if any may go. */
static bool issue_one(queue *q)
{
    uint32_t unit = 0;
    int stage = STAGES;
    if (q->lane_count - q->lane_over == OPEN) return false;
    if (q->credit > 0 && agreement_is_ready(q)) {
        issue_agreement(q);
        return true;
    }
    window *gather = q->credit > 0 ? first_ready(q) : NULL;
    uint64_t first = gather ? gather->first : UINT64_MAX;
    for (uint32_t u = 0; u < q->job->unit_count; u++) {
        if (!q->busy[u] || needed_by(q, u) >= first) continue;
        int s = STAGES - 1;
        while (s >= 0 &&
               !((slc_is_on_thread(q->chains[u].kinds[s]) || q->credit > 0) && stage_is_ready(q, &q->chains[u], s)))
            s--;
        if (s < 0) continue;
        first = needed_by(q, u);
        unit = u;
        stage = s;
    }
    if (stage < STAGES)
        issue_stage(q, unit, stage);
    else if (gather)
        issue_window(q, gather);
    return stage < STAGES || gather;
}

static void end_of_run(queue *q, const operation *op)
{
    chain *c = &q->chains[op->unit];
    c->over[op->stage]++;
    if ((int)op->stage == c->agreed && is_last_micro_batch(q, c)) q->runs_reduced++;
    bool busy = false;
    for (int s = REDUCE; s < (is_last_micro_batch(q, c) ? STAGES : REDUCE + 1); s++)
        busy |= c->kinds[s] != SLC_ITEM_KINDS && c->over[s] < c->runs;
    q->busy[op->unit] = busy;
}

static void end_operation(queue *q)
{
    operation *op = &q->lane[q->lane_over++];
    if (!slc_is_on_thread(op->kind)) q->credit += (int64_t)op->bytes;
    if (op->kind != SLC_ITEM_GATHER_WINDOW) op->position = q->begun;
    if (op->kind == SLC_ITEM_AGREE)
        q->agree_over = op->step + 1;
    else if (op->kind != SLC_ITEM_GATHER_WINDOW)
        end_of_run(q, op);
    else
        q->windows[q->first_window[op->unit] + op->index].over++;
}

/* ---- Time ---- */

static bool next_event(queue *q)
{
    if (q->lane_over < q->lane_count && q->lane[q->lane_over].end_s <= q->now_s) {
        end_operation(q);
        return true;
    }
    if (q->begun > q->over && q->slot_end_s <= q->now_s) {
        end_slot(q);
        return true;
    }
    if (slot_may_begin(q)) {
        begin_slot(q);
        return true;
    }
    return issue_one(q);
}

/* Runs until nothing more can happen in the step that is written down. Returns false if it was cancelled before. */
static bool run_queue(queue *q)
{
    q->last = q->job->barrier; /* nothing is late, so the first step is like all others */
    while (!slc_cancelled(q->in->cancel)) {
        while (next_event(q)) q->last = q->last || q->step == WARM_UP;
        double next_s = INFINITY;
        if (q->begun > q->over) next_s = q->slot_end_s;
        if (q->lane_over < q->lane_count) next_s = fmin(next_s, q->lane[q->lane_over].end_s);
        if (next_s == INFINITY) return true;
        q->now_s = next_s;
    }
    return false;
}

/* ---- Writing it down ---- */

static void append_operation(const queue *q, slc_order *order, const operation *op)
{
    if (op->kind == SLC_ITEM_AGREE) {
        slc_order_run(order, SLC_ITEM_AGREE, op->step != q->step, op->micro_batch, SLC_NONE, 0, 0, 0);
        return;
    }
    const chain *c = &q->chains[op->unit];
    uint64_t first = op->run * c->run_blocks, left = slc_unit_blocks(&q->job->units[op->unit]) - first;
    slc_order_run(order, op->kind, op->step != q->step, op->micro_batch, op->unit, op->index, first,
                  left < c->run_blocks ? left : c->run_blocks);
}

/* Writes the order. An operation comes after the slots during which it runs, so that the memory that it reads may stay
 * while they compute. A gather comes before them, so that it need not wait for memory that they release, and so does
 * everything that goes before the gather on the lane. */
static void write_order(queue *q, slc_order *order)
{
    uint32_t slots = slc_job_slots(q->job);
    uint64_t latest = UINT64_MAX;
    for (size_t i = q->lane_count; i-- > q->lane_first;) {
        if (q->lane[i].kind == SLC_ITEM_GATHER_WINDOW) latest = q->lane[i].position;
        if (q->lane[i].position > latest) q->lane[i].position = latest;
    }
    size_t next = q->lane_first;
    for (uint64_t slot = 0; slot < q->slots_a_step; slot++) {
        while (next < q->lane_count && q->lane[next].position <= q->step * q->slots_a_step + slot)
            append_operation(q, order, &q->lane[next++]);
        slc_order_slot(order, (uint32_t)(slot / slots), (uint32_t)(slot % slots));
    }
    while (next < q->lane_count) append_operation(q, order, &q->lane[next++]);
}

static void train(const slc_scheduling *in, slc_order *order)
{
    queue q;
    slc_times estimate = {0};
    if (!in->times && slc_times_estimate(in->job, &estimate)) {
        order->failed = true;
        return;
    }
    if (queue_init(&q, in, in->times ? in->times : &estimate) && run_queue(&q))
        write_order(&q, order);
    else
        order->failed = true;
    queue_fini(&q);
    slc_times_fini(&estimate);
}

const slc_scheduler slc_scheduler_priority = {
    .name = "priority",
    .doc = "partitions by layer priority with a credit, into the next step's forward, as ByteScheduler",
    .wants_times = true,
    .baseline = true,
    .train = train,
    .evaluate = slc_evaluate_one_ahead,
};
