/* Schedules as DeepCompile's prefetch does (Tanaka et al., 2025; deepspeed/compile/passes/prefetch.py): it starts from
 * the order that needs the least memory and walks backwards, carrying gathers to earlier places as long as the live
 * bytes stay below 90 % of the limit. Neighbours move together if one operation for both takes less than 1.2 times the
 * longer of them. Gradients stay in memory during the slots after theirs as far as there is room, so that their
 * reductions overlap. The 10 % are for holes in the packing; if they are not enough, less is hoisted, and in the end
 * nothing. schedulers_test.c covers this file. */
#include "lib/plan/strategy_table.h"
#include "sched/layout/make_plan.h"

#include <stdlib.h>

static const double share_of_limit = 0.9, fuse_factor = 1.2;
enum { MOST_TRIES = 3 };

/* Slots and gaps are counted over all micro-batches; gap g is before slot g. */
typedef struct {
    uint32_t unit, index, micro_batch;
    uint32_t first;    /* slot that needs it */
    uint32_t earliest; /* gap after the last use of its buffer */
    uint32_t gap;
    bool fused; /* stays with the next gather */
} gather;

typedef struct {
    uint32_t unit, micro_batch;
    uint32_t gap, latest; /* latest: the gap before the buffer's next use */
    uint64_t bytes;       /* of a gradient that lives until the reduction; 0: it is resident */
    bool claims;          /* its sum needs memory, and may have to wait for items before it */
} reduction;

typedef struct {
    const slc_scheduling *in;
    const slc_job *job;
    const slc_times *times;
    bool evaluate;
    uint32_t slots_a_pass, slots, micro_batches; /* slots of a micro-batch, of all of them */
    uint64_t cap;
    uint64_t *live; /* bytes in each slot */
    gather *gathers;
    reduction *reductions;
    uint32_t gather_count, reduction_count;
} hoist;

/* ---- Memory before anything is moved ---- */

static void add_live(hoist *h, uint32_t first, uint32_t end, uint64_t bytes)
{
    for (uint32_t s = first; s < end && s < h->slots; s++) h->live[s] += bytes;
}

static void add_in_every(hoist *h, uint32_t first, uint32_t last, uint64_t bytes)
{
    for (uint32_t m = 0; m < h->micro_batches && first < h->slots_a_pass; m++)
        add_live(h, m * h->slots_a_pass + first, m * h->slots_a_pass + last + 1, bytes);
}

static void add_activations(hoist *h)
{
    const slc_job *job = h->job;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        uint32_t first = life->first_slot, last = h->evaluate ? life->last_forward_slot : life->last_slot;
        bool again = !h->evaluate && life->recomputable && h->in->recompute &&
                     h->in->recompute[slc_slot_layer(job, first)] && last > first;
        if (last < first) continue;
        add_in_every(h, first, again ? first : last, life->bytes);
        if (again) add_in_every(h, last, last, life->bytes);
    }
    for (uint32_t w = 0; w < job->workspace_count; w++)
        add_in_every(h, job->workspaces[w].slot, job->workspaces[w].slot, job->workspaces[w].bytes);
}

static void add_unit(hoist *h, uint32_t u)
{
    const slc_unit *unit = &h->job->units[u];
    slc_buffer_rule rows[SLC_BUFFER_RULES_MAX];
    slc_window window;
    uint32_t first, last, begin = (h->micro_batches - 1) * h->slots_a_pass;
    slc_unit_gradient_slots(h->job, unit, &first, &last);
    for (uint32_t r = slc_buffer_rules(h->job, unit, h->in->strategies[u], rows); r-- > 0;) {
        uint64_t bytes = slc_buffer_bytes(h->job, unit, &rows[r]);
        for (uint32_t w = 0; rows[r].life == SLC_LIFE_WINDOW && slc_unit_window(h->job, unit, !h->evaluate, w, &window);
             w++)
            add_in_every(h, window.first_slot, window.last_slot, bytes);
        if (rows[r].life == SLC_LIFE_RESIDENT) add_live(h, 0, h->slots, bytes);
        if (h->evaluate) continue;
        if (rows[r].life == SLC_LIFE_GRADIENT && h->job->each) add_in_every(h, first, last, bytes);
        if (rows[r].life == SLC_LIFE_GRADIENT && !h->job->each) add_live(h, first, begin + last + 1, bytes);
        if (rows[r].life == SLC_LIFE_REDUCED)
            add_live(h, (h->job->each ? 0 : begin) + last + 1,
                     slc_updated_last(h->job, unit) ? h->slots : begin + last + 1, bytes);
    }
}

/* Returns the gap after the last use of a window's buffer. The rows that a micro-batch touches are known only when it
 * begins. */
static uint32_t earliest_gap(const hoist *h, uint32_t u, uint32_t m, const slc_window *w)
{
    if (!m) return 0;
    return slc_looks_up(&h->job->units[u]) ? m * h->slots_a_pass : (m - 1) * h->slots_a_pass + w->last_slot + 1;
}

/* Sorts gathers by the slot that needs them, and those of one slot by their units. */
static int by_need(const void *a, const void *b)
{
    const gather *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return (x->unit > y->unit) - (x->unit < y->unit);
}

static void add_gathers(hoist *h)
{
    for (uint32_t u = 0; u < h->job->unit_count; u++) {
        slc_window w;
        if (!slc_gathers_windows(h->in->strategies[u])) continue;
        for (uint32_t i = 0; slc_unit_window(h->job, &h->job->units[u], !h->evaluate, i, &w); i++)
            for (uint32_t m = 0; m < h->micro_batches; m++) {
                const uint32_t first = m * h->slots_a_pass + w.first_slot;
                h->gathers[h->gather_count++] = (gather){u, i, m, first, earliest_gap(h, u, m, &w), first, false};
            }
    }
    if (h->gather_count) qsort(h->gathers, h->gather_count, sizeof *h->gathers, by_need);
}

static void add_reductions(hoist *h, slc_order *order)
{
    for (uint32_t s = 0, count; s < h->slots && !h->evaluate; s++) {
        const uint32_t *users = slc_order_users(order, h->job, slc_slot_layer(h->job, s % h->slots_a_pass), &count);
        while (count-- > 0) {
            uint32_t u = users[count], m = s / h->slots_a_pass, first, last;
            if (!slc_reduced_after(h->job, &h->job->units[u], m, s % h->slots_a_pass)) continue;
            bool resident = !slc_gradient_is_transient(h->in->strategies[u]);
            const slc_unit *unit = &h->job->units[u];
            uint64_t bytes = slc_block_byte(h->job, unit, SLC_BUFFER_GRADIENT, false, slc_unit_blocks(unit));
            bool claims = slc_operations_of(h->job, unit, h->in->strategies[u]).keeps_sum;
            slc_unit_gradient_slots(h->job, unit, &first, &last);
            if (slc_looks_up(unit)) first = 0; /* the lists of rows are read until then */
            uint32_t latest = m + 1 < h->micro_batches ? (m + 1) * h->slots_a_pass + first : h->slots;
            h->reductions[h->reduction_count++] = (reduction){u, m, s + 1, latest, resident ? 0 : bytes, claims};
        }
    }
}

static bool hoist_init(hoist *h, const slc_scheduling *in, const slc_times *times, bool evaluate, slc_order *order)
{
    const slc_job *job = in->job;
    *h = (hoist){.in = in,
                 .job = job,
                 .times = times,
                 .evaluate = evaluate,
                 .slots_a_pass = evaluate ? job->layer_count : slc_job_slots(job),
                 .micro_batches = evaluate ? 1 : job->micro_batches,
                 .cap = in->limit == UINT64_MAX ? UINT64_MAX : (uint64_t)(share_of_limit * (double)in->limit)};
    h->slots = h->slots_a_pass * h->micro_batches;
    size_t windows = 1;
    for (uint32_t u = 0; u < job->unit_count; u++) windows += 2 * (size_t)job->units[u].use_count;
    h->live = calloc((size_t)h->slots + 1, sizeof *h->live);
    h->gathers = malloc(windows * h->micro_batches * sizeof *h->gathers);
    h->reductions = malloc(((size_t)job->unit_count + 1) * h->micro_batches * sizeof *h->reductions);
    if (!h->live || !h->gathers || !h->reductions) return false;
    add_live(h, 0, h->slots, job->scratch_bytes + 8 * slc_agreement_words(job));
    add_activations(h);
    for (uint32_t u = 0; u < job->unit_count; u++) add_unit(h, u);
    add_gathers(h);
    add_reductions(h, order);
    return true;
}

static void hoist_fini(hoist *h)
{
    free(h->reductions);
    free(h->gathers);
    free(h->live);
}

/* ---- Moving ---- */

static bool has_room(const hoist *h, uint32_t slot, uint64_t bytes)
{
    return h->live[slot] <= h->cap && bytes <= h->cap - h->live[slot];
}

/* Delays reductions, and so keeps gradients: while one more slot computes, or (`long_ones`), once the gathers have
 * their places, as long as the reduction passes no other operation. */
static void keep_gradients(hoist *h, bool long_ones)
{
    uint32_t next_gather = h->gather_count, next = h->slots;
    for (uint32_t i = h->reduction_count; i-- > 0;) {
        reduction *r = &h->reductions[i];
        while (long_ones && next_gather > 0 && h->gathers[next_gather - 1].gap >= r->gap)
            next = h->gathers[--next_gather].gap;
        uint32_t end = (long_ones && !r->claims) || next <= r->gap ? next : r->gap + 1;
        if (end > r->latest) end = r->latest;
        while (r->gap < end && has_room(h, r->gap, r->bytes)) h->live[r->gap++] += r->bytes;
        next = r->gap;
    }
}

static uint64_t gather_bytes(const hoist *h, uint32_t i)
{
    const slc_unit *unit = &h->job->units[h->gathers[i].unit];
    return slc_operation_bytes(h->job, unit, SLC_ITEM_GATHER_WINDOW, unit->elements);
}

static double gather_s(const hoist *h, uint64_t bytes)
{
    return slc_transfer_s(h->job, h->times, SLC_ITEM_GATHER_WINDOW, bytes);
}

/* Returns true if gather i goes with the ones after it, which are the first of those being carried. */
static bool is_fused(const hoist *h, uint32_t i, uint32_t carried_end)
{
    if (i + 1 >= carried_end) return false;
    uint64_t carried = 0, mine = gather_bytes(h, i);
    for (uint32_t k = i + 1; k < carried_end; k++) {
        carried += gather_bytes(h, k);
        if (!h->gathers[k].fused) break;
    }
    double one = gather_s(h, carried), other = gather_s(h, mine);
    return gather_s(h, carried + mine) < fuse_factor * (one > other ? one : other);
}

/* Gathers [first, end) are being carried; those after them have their places. */
static void hoist_gathers(hoist *h)
{
    uint32_t first = h->gather_count, end = first;
    uint64_t bytes = 0;
    for (uint32_t gap = h->slots; gap-- > 0;) {
        for (; first > 0 && h->gathers[first - 1].first == gap; first--) {
            h->gathers[first - 1].fused = is_fused(h, first - 1, end);
            bytes += gather_bytes(h, first - 1);
        }
        uint32_t keep = end; /* the gathers before it may go on */
        for (uint32_t k = first; k < keep; k++)
            if (h->gathers[k].earliest >= gap) keep = k;
        while (first < end && (!gap || end > keep || !has_room(h, gap - 1, bytes))) do {
                h->gathers[--end].gap = gap;
                bytes -= gather_bytes(h, end);
            } while (end > first && h->gathers[end - 1].fused);
        if (gap && bytes) h->live[gap - 1] += bytes;
    }
}

/* ---- Writing it down ---- */

static void write_update(const hoist *h, slc_order *order, const reduction *r)
{
    if (r->micro_batch + 1 == h->job->micro_batches)
        slc_order_update(order, h->job, h->in->strategies, slc_updated_after(h->job, h->in->strategies, r->unit));
}

/* An update comes after the next reduction, which keeps the link busy during the update. */
static void write_reductions(const hoist *h, slc_order *order, uint32_t gap, uint32_t *next)
{
    uint32_t first = *next;
    for (; *next < h->reduction_count && h->reductions[*next].gap <= gap; (*next)++) {
        const reduction *r = &h->reductions[*next];
        slc_order_reduce(order, h->job, h->in->strategies, r->micro_batch, r->unit);
        if (*next > first) write_update(h, order, r - 1);
    }
    if (*next > first) write_update(h, order, &h->reductions[*next - 1]);
}

static void write_order(const hoist *h, slc_order *order)
{
    const slc_job *job = h->job;
    uint32_t reduced = 0, gathered = 0;
    for (uint32_t s = 0; s < h->slots; s++) {
        write_reductions(h, order, s, &reduced);
        for (; gathered < h->gather_count && h->gathers[gathered].gap <= s; gathered++) {
            const gather *g = &h->gathers[gathered];
            slc_order_gather_window(order, job, g->micro_batch, g->unit, g->index);
        }
        if (!h->evaluate) slc_order_values_ahead(order, job, h->in->strategies, s);
        slc_order_slot(order, s / h->slots_a_pass, s % h->slots_a_pass);
    }
    if (h->evaluate) return;
    write_reductions(h, order, h->slots, &reduced);
    slc_order_operation(order, job, SLC_ITEM_AGREE, job->micro_batches - 1, SLC_NONE);
    slc_order_updates_at_end(order, job, h->in->strategies);
    slc_order_value_gathers(order, job, h->in->strategies);
}

static void order_pass(const slc_scheduling *in, bool evaluate, slc_order *order)
{
    hoist h;
    slc_times estimate = {0};
    if (!in->times && slc_times_estimate(in->job, &estimate)) {
        order->failed = true;
        return;
    }
    if (hoist_init(&h, in, in->times ? in->times : &estimate, evaluate, order)) {
        keep_gradients(&h, false);
        hoist_gathers(&h);
        keep_gradients(&h, true);
        write_order(&h, order);
    } else
        order->failed = true;
    hoist_fini(&h);
    slc_times_fini(&estimate);
}

/* ---- Fitting when packed ---- */

static void train_unchecked(const slc_scheduling *in, slc_order *order)
{
    order_pass(in, false, order);
}

static void evaluate_unchecked(const slc_scheduling *in, slc_order *order)
{
    order_pass(in, true, order);
}

/* If the plan does not fit when packed, less is hoisted, in proportion, and in the end nothing, as serial does. */
static void order_within(const slc_scheduling *in, bool evaluate, slc_order *order)
{
    static const slc_scheduler unchecked = {
        .name = "greedy", .doc = "", .train = train_unchecked, .evaluate = evaluate_unchecked};
    slc_scheduling tried = *in;
    for (int i = 0; in->limit != UINT64_MAX && tried.limit; i++) {
        uint64_t bytes;
        if (slc_plan_measure(&tried, &unchecked, in->limit, &bytes)) {
            order->failed = true;
            return;
        }
        if (bytes <= in->limit) break;
        double ratio = (double)in->limit / (double)bytes;
        tried.limit = i + 1 < MOST_TRIES ? (uint64_t)(0.97 * ratio * (double)tried.limit) : 0;
    }
    if (tried.limit)
        order_pass(&tried, evaluate, order);
    else
        (evaluate ? slc_scheduler_serial.evaluate : slc_scheduler_serial.train)(in, order);
}

static void train(const slc_scheduling *in, slc_order *order)
{
    order_within(in, false, order);
}

static void evaluate(const slc_scheduling *in, slc_order *order)
{
    order_within(in, true, order);
}

const slc_scheduler slc_scheduler_greedy = {
    .name = "greedy",
    .doc = "hoists gathers as early as memory allows, as DeepCompile",
    .wants_times = true,
    .baseline = true,
    .train = train,
    .evaluate = evaluate,
    .measures = MOST_TRIES,
};
