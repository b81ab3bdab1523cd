/* Fractions become runs block by block: run j of n moves at the position where the flow's sum passes (j - 1/2) / n. For
 * a position inside a slot, gathers come before the slot's item, so that they may run at the same time, and reductions
 * after it, because memory that they free is not counted on before the slot has ended. An update follows its reduction
 * at a distance, so that the link does not wait for it. An exchange stays whole and moves where half of its flow has
 * passed: as a reduction if its unit does not wait for the agreement, else after all reductions. At one place, the
 * reduction of a SPLIT unit comes first and that of its rows second, then its update, so that the other reductions run
 * during the update. schedulers_test.c covers this file. */
#include "sched/schedulers/slot_order.h"

#include "lib/plan/strategy_table.h"
#include "sched/order/live_bytes.h"

#include <stdlib.h>

/* Ranks: the order of places inside one position. */
enum { GATHER_BEFORE, THE_SLOT, REDUCE, GATHER_VALUE, GATHER_AFTER, RANKS };

typedef struct {
    slc_item item;
    int64_t place;    /* position * RANKS + rank, in the pass that it is issued in */
    uint64_t urgency; /* lower goes first at one place */
} placed_item;

typedef struct {
    const slc_scheduling *in;
    const slc_slot_solution *solution;
    const slc_slot_order_options *options;
    placed_item *list;
    size_t count, capacity;
    bool failed;
    uint32_t slots; /* slots of a step */
} draft;

static placed_item *add_placed(draft *p)
{
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? 2 * p->capacity : 256;
        placed_item *list = realloc(p->list, capacity * sizeof *list);
        if (!list) {
            p->failed = true;
            return NULL;
        }
        p->list = list;
        p->capacity = capacity;
    }
    p->list[p->count] = (placed_item){0};
    return &p->list[p->count++];
}

/* ---- Runs ---- */

typedef struct {
    uint64_t blocks, per_run;
    uint32_t runs;
} cut;

static cut cut_unit(const draft *p, uint32_t u)
{
    const slc_unit *unit = &p->in->job->units[u];
    /* Values are the narrowest type that moves: runs that are long enough for values are long enough for gradients. */
    uint64_t blocks = slc_unit_blocks(unit), block_bytes = sluice_dtype_bytes(unit->dtype) * unit->block_elements;
    uint64_t wanted = p->in->times ? p->in->times->link.block_bytes : 4 << 20;
    uint64_t per_run = (wanted + block_bytes - 1) / block_bytes;
    uint64_t least = (blocks + p->options->most_runs - 1) / p->options->most_runs;
    if (per_run < least) per_run = least;
    if (per_run < 1) per_run = 1;
    return (cut){blocks, per_run, (uint32_t)((blocks + per_run - 1) / per_run)};
}

static void set_blocks(slc_item *item, const cut *c, uint32_t run)
{
    item->first_block = run * c->per_run;
    item->block_count = c->blocks - item->first_block < c->per_run ? c->blocks - item->first_block : c->per_run;
}

/* The flows of one operation, which are neighbours in the solution's list. */
typedef struct {
    const slc_flow *flows;
    uint32_t count;
} stretch;

static uint32_t position_of(const stretch *s, double share)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        sum += s->flows[i].fraction;
        if (sum >= share) return s->flows[i].position;
    }
    return s->flows[s->count - 1].position;
}

static stretch stretch_at(const slc_slot_solution *solution, uint32_t first)
{
    stretch s = {solution->flows + first, 0};
    while (first + s.count < solution->flow_count && slc_flow_same_operation(&s.flows[0], &s.flows[s.count])) s.count++;
    return s;
}

/* Returns true if the flow comes before those of the operation. An answer's flows are sorted. */
static bool is_before(const slc_flow *flow, slc_flow_kind kind, uint32_t unit, uint32_t micro_batch)
{
    if (flow->kind != kind) return flow->kind < kind;
    if (flow->unit != unit) return flow->unit < unit;
    return flow->micro_batch < micro_batch;
}

static stretch find_stretch(const slc_slot_solution *solution, slc_flow_kind kind, uint32_t unit, uint32_t micro_batch)
{
    uint32_t low = 0, high = solution->flow_count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (is_before(&solution->flows[middle], kind, unit, micro_batch))
            low = middle + 1;
        else
            high = middle;
    }
    const slc_flow *f = &solution->flows[low];
    bool found = low < solution->flow_count && f->kind == kind && f->unit == unit && f->micro_batch == micro_batch;
    return found ? stretch_at(solution, low) : (stretch){0};
}

/* ---- Places ---- */

static int64_t place_in_pass(const draft *p, int64_t position, int rank)
{
    int64_t cycle = 2 * (int64_t)p->slots;
    return (position >= cycle ? position - cycle : position) * RANKS + rank;
}

/* Returns the rank of a unit's reduction; the lowest goes first. First go the reductions that the gather of rows waits
 * for, then gradients in the order in which they are complete. */
static uint64_t reduction_urgency(const slc_job *job, uint32_t u)
{
    uint32_t first, last;
    if (slc_role_of(&job->units[u])->partner_reads_first) return 0;
    if (slc_looks_up(&job->units[u])) return 1;
    slc_unit_gradient_slots(job, &job->units[u], &first, &last);
    return 2 + (uint64_t)last;
}

static uint32_t last_position(const draft *p, uint32_t u, uint32_t m)
{
    stretch s = find_stretch(p->solution, SLC_FLOW_REDUCE, u, m);
    return s.count ? s.flows[s.count - 1].position : 0;
}

static void place_reduction(draft *p, uint32_t u, uint32_t m, const cut *c, uint32_t run, uint32_t position)
{
    const slc_job *job = p->in->job;
    slc_unit_operations of = slc_operations_of(job, &job->units[u], p->in->strategies[u]);
    placed_item *made = add_placed(p);
    if (!made) return;
    made->item = (slc_item){.kind = of.reduce, .late = position >= 2 * p->slots, .micro_batch = m, .unit = u};
    set_blocks(&made->item, c, run);
    bool ahead = p->options->split_ahead && slc_role_of(&job->units[u])->partner_reads_first && !(position & 1);
    made->place = place_in_pass(p, position, ahead ? GATHER_BEFORE : REDUCE);
    made->urgency = reduction_urgency(job, u) << 32 | run;
}

static void place_value_gather(draft *p, uint32_t u, const cut *c, uint32_t run, uint32_t position)
{
    const slc_job *job = p->in->job;
    placed_item *made = add_placed(p);
    if (!made) return;
    made->item = (slc_item){.kind = SLC_ITEM_GATHER_VALUE,
                            .late = position >= 2 * p->slots,
                            .micro_batch = job->micro_batches - 1,
                            .unit = u};
    set_blocks(&made->item, c, run);
    made->place = place_in_pass(p, position, GATHER_VALUE);
    made->urgency = (uint64_t)job->units[u].uses[0].layer << 32 | run;
}

static void place_whole(draft *p, slc_item_kind kind, uint32_t u, int64_t position, int rank)
{
    const slc_job *job = p->in->job;
    placed_item *made = kind == SLC_ITEM_KINDS ? NULL : add_placed(p);
    if (!made) return;
    made->item = (slc_item){.kind = kind,
                            .late = position >= 2 * (int64_t)p->slots,
                            .micro_batch = job->micro_batches - 1,
                            .unit = u,
                            .block_count = slc_unit_blocks(&job->units[u])};
    made->place = place_in_pass(p, position, rank);
    made->urgency = (rank == REDUCE ? reduction_urgency(job, u) : job->units[u].uses[0].layer) << 32 | kind;
}

/* Places the operations of a onebit unit. Those that the agreement hears of come before it, with a barrier within the
 * step. At one place the kinds of one unit come in the order of their numbers. */
static void place_exchange(draft *p, uint32_t u, int64_t position)
{
    const slc_job *job = p->in->job;
    slc_unit_operations of = slc_operations_of(job, &job->units[u], p->in->strategies[u]);
    int64_t end = 2 * (int64_t)p->slots - 1, begin = position;
    if (slc_exchange_waits(job)) {
        uint32_t first, last;
        slc_unit_gradient_slots(job, &job->units[u], &first, &last);
        int64_t complete = end + 1 - 2 * (int64_t)slc_job_slots(job) + 2 * (int64_t)last + 1;
        place_whole(p, of.reduce, u, complete, REDUCE);
        place_whole(p, of.inspect, u, complete, REDUCE);
        place_whole(p, of.compress, u, position, GATHER_VALUE);
        place_whole(p, of.exchange, u, position, GATHER_VALUE);
        return;
    }
    if (job->barrier && begin > end) begin = end;
    place_whole(p, of.reduce, u, begin, REDUCE);
    place_whole(p, of.compress, u, begin, REDUCE);
    place_whole(p, of.exchange, u, position, REDUCE);
}

/* Places one run of a window's gather; `position` is that of the model. The gather of the step's first window comes
 * after the operations that it needs from the previous step: these are late in this pass, the last of them at the place
 * `not_before`. */
static void place_window_gather(draft *p, const slc_flow *flow, const cut *c, uint32_t run, int64_t position,
                                int64_t not_before)
{
    const slc_job *job = p->in->job;
    bool first = !flow->micro_batch && !flow->window;
    int64_t cycle = 2 * (int64_t)p->slots;
    slc_window window;
    placed_item *made = add_placed(p);
    if (!made || !slc_unit_window(job, &job->units[flow->unit], true, flow->window, &window)) return;
    made->item = (slc_item){
        .kind = SLC_ITEM_GATHER_WINDOW, .micro_batch = flow->micro_batch, .unit = flow->unit, .index = flow->window};
    set_blocks(&made->item, c, run);
    int64_t here = first ? position - cycle : position;
    if (here < -1) here = -1;
    bool in_slot = !(here & 1);
    made->place = here * RANKS + (in_slot ? GATHER_BEFORE : GATHER_AFTER);
    if (made->place <= not_before) made->place = not_before + (GATHER_AFTER - REDUCE);
    made->urgency = (uint64_t)window.first_slot << 32 | run;
}

/* ---- Units ---- */

static int64_t reduce_position(const draft *p, uint32_t u, const cut *c, uint32_t run)
{
    stretch s = find_stretch(p->solution, SLC_FLOW_REDUCE, u, p->in->job->micro_batches - 1);
    return s.count ? (int64_t)position_of(&s, (run + 0.5) / c->runs) : -1;
}

/* Returns the place that a window's gather must come after; INT64_MIN: there is none. For the step's first window it is
 * that of the unit's reduction, if that is late in this pass. For rows it is that of the previous micro-batch's
 * reductions, which use the same lists. */
static int64_t window_follows(const draft *p, const slc_flow *window, int64_t reduced)
{
    const slc_job *job = p->in->job;
    uint32_t m = window->micro_batch;
    if (!m && !window->window && reduced >= 2 * (int64_t)p->slots) return place_in_pass(p, reduced, REDUCE);
    if (!m || !job->each || !slc_looks_up(&job->units[window->unit])) return INT64_MIN;
    uint32_t rows = last_position(p, window->unit, m - 1);
    return place_in_pass(p, (int64_t)slc_most(rows, last_position(p, job->units[window->unit].partner, m - 1)), REDUCE);
}

static void place_flow(draft *p, const stretch *s)
{
    const slc_flow *flow = s->flows;
    if (flow->kind == SLC_FLOW_EXCHANGE) {
        place_exchange(p, flow->unit, position_of(s, 0.5));
        return;
    }
    cut c = cut_unit(p, flow->unit);
    const slc_unit *unit = &p->in->job->units[flow->unit];
    slc_unit_operations of = slc_operations_of(p->in->job, unit, p->in->strategies[flow->unit]);
    uint32_t m = flow->micro_batch;
    for (uint32_t run = 0; run < c.runs; run++) {
        uint32_t position = position_of(s, (run + 0.5) / c.runs);
        if (flow->kind == SLC_FLOW_REDUCE) {
            if (slc_looks_up(unit)) position = (uint32_t)slc_most(position, last_position(p, unit->partner, m));
            place_reduction(p, flow->unit, m, &c, run, position);
            continue;
        }
        int64_t reduced = reduce_position(p, flow->unit, &c, run);
        if (flow->kind == SLC_FLOW_GATHER_VALUE) {
            if (of.gather_value == SLC_ITEM_KINDS) continue; /* dp with `each`: its gradient, right before the update */
            if (reduced > (int64_t)position) position = (uint32_t)reduced;
            place_value_gather(p, flow->unit, &c, run, position);
        } else {
            place_window_gather(p, flow, &c, run, position, window_follows(p, flow, reduced));
        }
    }
}

/* ---- The agreement ---- */

static bool is_heard(const slc_job *job, const slc_item *item)
{
    return slc_precedes_agreement(job, item->kind) && item->micro_batch + 1 == job->micro_batches;
}

static bool needs_agreement(const slc_scheduling *in, const slc_item *item)
{
    bool after_update = item->kind == SLC_ITEM_GATHER_VALUE;
    bool of_exchange = item->kind == SLC_ITEM_COMPRESS || item->kind == SLC_ITEM_EXCHANGE;
    return (after_update || of_exchange) && slc_waits_for_agreement(in->job, in->strategies[item->unit]);
}

/* The model knows that the agreement needs all gradients, but not that it needs all reductions: if the first layers
 * are frozen, it may move one during their backward and put an exchange before it. Operations that wait for the
 * agreement are put behind the last one that the agreement hears of. With a barrier no such operation is late. */
static void follow_agreement(draft *p)
{
    int64_t heard = 0;
    for (size_t i = 0; i < p->count; i++)
        if (is_heard(p->in->job, &p->list[i].item) && p->list[i].place > heard) heard = p->list[i].place;
    for (size_t i = 0; i < p->count; i++) {
        placed_item *it = &p->list[i];
        if (it->place < heard && !it->item.late && needs_agreement(p->in, &it->item))
            it->place = heard / RANKS * RANKS + GATHER_VALUE;
    }
}

static int by_place(const void *a, const void *b)
{
    const placed_item *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    if (x->urgency != y->urgency) return x->urgency < y->urgency ? -1 : 1;
    if (x->item.unit != y->item.unit) return x->item.unit < y->item.unit ? -1 : 1;
    return (x->item.first_block > y->item.first_block) - (x->item.first_block < y->item.first_block);
}

static bool continues(const placed_item *a, const placed_item *b)
{
    const slc_item *x = &a->item, *y = &b->item;
    return a->place == b->place && x->kind == y->kind && x->unit == y->unit && x->micro_batch == y->micro_batch &&
           x->index == y->index && x->first_block + x->block_count == y->first_block;
}

/* Joins neighbours that continue each other; the list is sorted. */
static void join_runs(draft *p)
{
    size_t kept = 0;
    for (size_t i = 1; i < p->count; i++) {
        if (continues(&p->list[kept], &p->list[i]))
            p->list[kept].item.block_count += p->list[i].item.block_count;
        else
            p->list[++kept] = p->list[i];
    }
    if (p->count) p->count = kept + 1;
}

/* ---- Writing ---- */

typedef struct {
    slc_item item;
    uint32_t since; /* operations on the link up to its reduction or exchange */
} pending;

typedef struct {
    const draft *p;
    slc_order *order;
    slc_live_bytes live;
    pending *updates; /* updates whose reductions or exchanges are written */
    size_t first, count;
    uint32_t on_link;
    const slc_item **waiting; /* gathers for which there was no memory before their slot */
    size_t waiting_count;
    bool *reduced;        /* [units] in the last micro-batch; a table of rows is reduced by one run */
    size_t heard_left[2]; /* operations that must come before the step's agreement and are not written yet: not late,
                             late */
    bool agreed;
} writing;

static void write_item(writing *w, const slc_item *i)
{
    slc_order_append(w->order, *i);
    slc_live_bytes_pass(&w->live, i);
}

static void write_update(writing *w, pending *update)
{
    const slc_job *job = w->p->in->job;
    slc_item *i = &update->item;
    if (!i->block_count) return;
    slc_unit_operations of = slc_operations_of(job, &job->units[i->unit], w->p->in->strategies[i->unit]);
    if (of.gather_gradient != SLC_ITEM_KINDS) {
        slc_item gather = *i;
        gather.kind = of.gather_gradient;
        write_item(w, &gather);
    }
    write_item(w, i);
    i->block_count = 0; /* block_count 0 marks it as written */
}

/* Returns true if the update may be written now. Late updates belong to a step that has agreed already. */
static bool may_update(const writing *w, const slc_item *update)
{
    const slc_scheduling *in = w->p->in;
    const slc_unit *unit = &in->job->units[update->unit];
    if (slc_partner_wait_of(unit, SLC_ITEM_UPDATE) && !w->reduced[unit->partner]) return false;
    return w->agreed || update->late || !slc_waits_for_agreement(in->job, in->strategies[update->unit]);
}

/* True if the update may be issued now. One that the next step's rows wait for is not delayed. */
static bool is_due(const writing *w, const pending *update, uint32_t delay)
{
    bool first = slc_role_of(&w->p->in->job->units[update->item.unit])->partner_reads_first;
    return (!delay || first || w->on_link - update->since >= delay) && may_update(w, &update->item);
}

static void write_due_updates(writing *w, uint32_t delay)
{
    for (size_t k = w->first; k < w->count; k++)
        if (is_due(w, &w->updates[k], delay)) write_update(w, &w->updates[k]);
    while (w->first < w->count && !w->updates[w->first].item.block_count) w->first++;
}

/* Writes the updates that a gather needs. */
static void write_needed_updates(writing *w, const slc_item *gather)
{
    for (size_t k = w->first; k < w->count; k++) {
        const slc_item *i = &w->updates[k].item;
        if (i->unit == gather->unit && i->block_count && slc_share_blocks(i, gather)) write_update(w, &w->updates[k]);
    }
}

/* A slot may read the values of a late update that has no gather after it (dp). */
static void write_updates_before(writing *w, uint32_t slot)
{
    const slc_job *job = w->p->in->job;
    for (size_t k = w->first; k < w->count; k++) {
        const slc_unit *unit = &job->units[w->updates[k].item.unit];
        for (uint32_t i = 0; w->updates[k].item.late && i < unit->use_count; i++)
            if (unit->uses[i].layer == slc_slot_layer(job, slot)) write_update(w, &w->updates[k]);
    }
}

/* Writes the agreement after the last operation that it must follow. It is late if any of those is. */
static void agree_if_due(writing *w, bool late)
{
    bool any_late = w->heard_left[1] || late;
    if (w->agreed || w->heard_left[late] || any_late != late) return;
    w->agreed = true;
    slc_order_run(w->order, SLC_ITEM_AGREE, late, w->p->in->job->micro_batches - 1, SLC_NONE, 0, 0, 0);
}

/* Returns true if the update is the next operation on the item's blocks. */
static bool is_before_update(const writing *w, const slc_item *item)
{
    const slc_scheduling *in = w->p->in;
    if (slc_looks_up(&in->job->units[item->unit])) return false;
    if (slc_exchanges(in->strategies[item->unit])) return item->kind == SLC_ITEM_EXCHANGE;
    return slc_is_reduction(item->kind) && item->micro_batch + 1 == in->job->micro_batches;
}

static void write_operation(writing *w, const slc_item *item)
{
    bool first_window = item->kind == SLC_ITEM_GATHER_WINDOW && !item->micro_batch;
    if (item->kind == SLC_ITEM_GATHER_VALUE || first_window) write_needed_updates(w, item);
    write_item(w, item);
    w->on_link += !slc_is_on_thread(item->kind);
    if (slc_is_reduction(item->kind) && item->micro_batch + 1 == w->p->in->job->micro_batches)
        w->reduced[item->unit] = true;
    if (is_before_update(w, item)) {
        slc_item update = *item;
        update.kind = SLC_ITEM_UPDATE;
        w->updates[w->count++] = (pending){update, w->on_link};
    }
    if (is_heard(w->p->in->job, item)) {
        w->heard_left[item->late]--;
        agree_if_due(w, item->late);
    }
    write_due_updates(w, w->p->options->update_delay);
}

static bool begins_with(const writing *w, const slc_item *gather, uint32_t micro_batch, uint32_t slot)
{
    const slc_job *job = w->p->in->job;
    slc_window window;
    return gather->micro_batch == micro_batch &&
           slc_unit_window(job, &job->units[gather->unit], true, gather->index, &window) && window.first_slot == slot;
}

/* Writes waiting gathers that fit by now, or that must come because `slot` needs them. */
static void write_waiting(writing *w, uint32_t micro_batch, uint32_t slot)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->waiting_count; i++) {
        const slc_item *gather = w->waiting[i];
        bool now = begins_with(w, gather, micro_batch, slot);
        if (now || (!kept && slc_live_bytes_fit(&w->live, gather, micro_batch, slot)))
            write_operation(w, gather);
        else
            w->waiting[kept++] = gather;
    }
    w->waiting_count = kept;
}

/* Writes everything between the previous slot and this one. */
static void write_before_slot(writing *w, size_t *next, uint32_t micro_batch, uint32_t slot, int64_t place)
{
    const draft *p = w->p;
    for (; *next < p->count && p->list[*next].place < place; ++*next) {
        const slc_item *item = &p->list[*next].item;
        bool early = item->kind == SLC_ITEM_GATHER_WINDOW && p->list[*next].place == place - THE_SLOT + GATHER_BEFORE;
        if (early && !slc_live_bytes_fit(&w->live, item, micro_batch, slot) && !w->p->in->job->barrier)
            w->waiting[w->waiting_count++] = item;
        else
            write_operation(w, item);
    }
    if (!slc_live_bytes_fit(&w->live, NULL, micro_batch, slot)) write_due_updates(w, 0);
    write_waiting(w, micro_batch, slot);
    write_updates_before(w, slot);
}

static void write_all(writing *w)
{
    const draft *p = w->p;
    uint32_t per = slc_job_slots(p->in->job);
    size_t next = 0;
    for (size_t i = 0; i < p->count; i++) w->heard_left[p->list[i].item.late] += is_heard(p->in->job, &p->list[i].item);
    bool late = w->heard_left[1];
    for (uint32_t s = 0; s < p->slots; s++) {
        write_before_slot(w, &next, s / per, s % per, (int64_t)s * 2 * RANKS + THE_SLOT);
        slc_order_slot(w->order, s / per, s % per);
        slc_live_bytes_slot(&w->live, s / per, s % per);
    }
    for (; next < p->count; next++) write_operation(w, &p->list[next].item);
    agree_if_due(w, late);
    write_due_updates(w, 0);
}

static void expect_late(writing *w, const slc_item *item)
{
    slc_live_bytes_late(&w->live, item);
    if (!is_before_update(w, item)) return;
    slc_item update = *item;
    update.kind = SLC_ITEM_UPDATE;
    slc_live_bytes_late(&w->live, &update);
}

static void write_order(draft *p, slc_order *order)
{
    writing w = {.p = p, .order = order};
    w.updates = malloc((p->count + 1) * sizeof *w.updates);
    w.waiting = malloc((p->count + 1) * sizeof *w.waiting);
    w.reduced = calloc((size_t)p->in->job->unit_count + 1, sizeof *w.reduced);
    order->failed |= !w.updates || !w.waiting || !w.reduced || !slc_live_bytes_init(&w.live, p->in);
    for (size_t i = 0; !order->failed && i < p->count; i++)
        if (p->list[i].item.late) expect_late(&w, &p->list[i].item);
    if (!order->failed) write_all(&w);
    slc_live_bytes_fini(&w.live);
    free(w.reduced);
    free(w.updates);
    free(w.waiting);
}

void slc_order_from_slots(const slc_scheduling *in, const slc_slot_solution *solution,
                          const slc_slot_order_options *options, slc_order *order)
{
    draft p = {
        .in = in, .solution = solution, .options = options, .slots = in->job->micro_batches * slc_job_slots(in->job)};
    for (uint32_t i = 0; i < solution->flow_count;) {
        stretch s = stretch_at(solution, i);
        place_flow(&p, &s);
        i += s.count;
    }
    if (p.failed) {
        order->failed = true;
    } else {
        follow_agreement(&p);
        if (p.count) qsort(p.list, p.count, sizeof *p.list, by_place);
        if (options->fuse) join_runs(&p);
        write_order(&p, order);
    }
    free(p.list);
}
