/* The search has two levels. The upper one walks over sequences of operations, each late or not, and cuts them off by
 * time on the link alone and by memory. The lower one places the slots among the operations of such a sequence. The
 * bytes alive at a slot depend only on how many operations of the sequence come before it, so the ways through
 * (operations, slots) form a lattice; the upper level only needs to know which of its points can be reached.
 * sched/joint/small_cases_test.c covers this file. */
#include "tests/support/sched/every_order.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/layout/make_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPERATIONS = SLC_EVERY_ORDER_OPERATIONS, SLOTS = SLC_EVERY_ORDER_SLOTS, PACKING_TRIES = 64, LOOK_AT_CLOCK = 64 };

typedef struct {
    slc_item_kind kind;
    uint32_t unit, run, window;
    uint32_t first_gap, last_gap; /* gap s is before slot s, gap S after the last slot */
    uint32_t from_slot;           /* reductions: the gradient's first slot */
    uint32_t until_slot;          /* windows: the last slot */
    uint32_t ready_slot;          /* reductions: the slot after which they may start */
    uint64_t bytes;               /* its buffer's, while it is alive; 0: it keeps nothing */
    double s, update_s;
    bool late;
    uint32_t before; /* operations of the sequence that must come before it, one bit each */
    /* The step that is wanted: */
    double release_s, deadline_s;
} operation;

typedef struct {
    const slc_every_order_request *request;
    slc_every_order_answer *answer;
    const slc_job *job;
    uint32_t slots, count;
    operation ops[OPERATIONS];
    uint32_t needs[SLOTS];      /* of each slot: operations that must come before it */
    int64_t at_slot[SLOTS + 1]; /* bytes that no order changes, in a slot and in the gap before it */
    int64_t at_gap[SLOTS + 1];
    double slot_s[SLOTS],
        early_s[SLOTS + 1]; /* early_s: earliest start of a slot; the last one: the end of all compute */
    double wanted_s;        /* steps below this are looked for */
    bool any_late;
    double work_s;
    uint32_t sequence[OPERATIONS];
    uint32_t gap_of[OPERATIONS];
    uint32_t first_of[SLC_EVERY_ORDER_UNITS]; /* [units] index of a unit's first operation */
    slc_order order;
    uint64_t nodes;
    bool stop;
    sluice_status status;
} search;

static uint32_t runs_of(const search *s, uint32_t u)
{
    return s->job->units[u].trainable ? (uint32_t)slc_unit_blocks(&s->job->units[u]) : 0;
}

/* ---- The operations to order ---- */

static void add_fixed_life(search *s, uint32_t first, uint32_t last, uint64_t bytes)
{
    for (uint32_t i = first; i <= last && i < s->slots; i++) {
        s->at_slot[i] += (int64_t)bytes;
        if (i > first) s->at_gap[i] += (int64_t)bytes;
    }
}

static void add_fixed(search *s)
{
    const slc_job *job = s->job;
    uint64_t resident = job->scratch_bytes + 8 * slc_agreement_words(job);
    for (uint32_t u = 0; u < job->unit_count; u++)
        resident += slc_resident_bytes(job, &job->units[u], s->request->strategies[u]);
    for (uint32_t i = 0; i <= s->slots; i++) s->at_slot[i] = s->at_gap[i] = (int64_t)resident;
    for (uint32_t a = 0; a < job->activation_count; a++)
        add_fixed_life(s, job->activations[a].first_slot, job->activations[a].last_slot, job->activations[a].bytes);
    for (uint32_t w = 0; w < job->workspace_count; w++)
        add_fixed_life(s, job->workspaces[w].slot, job->workspaces[w].slot, job->workspaces[w].bytes);
}

static operation *add_operation(search *s, slc_item_kind kind, uint32_t unit, uint32_t run)
{
    const slc_job *job = s->job;
    if (s->count == OPERATIONS) return NULL;
    operation *o = &s->ops[s->count++];
    const slc_unit *of = &job->units[unit];
    uint64_t elements = slc_run_elements(of, run, 1);
    *o = (operation){.kind = kind,
                     .unit = unit,
                     .run = run,
                     .bytes = slc_operation_bytes(job, of, kind, elements),
                     .s = slc_operation_s(job, s->request->times, kind, of, elements)};
    s->work_s += o->s;
    return o;
}

static bool add_reduction(search *s, uint32_t u, uint32_t run)
{
    const slc_job *job = s->job;
    operation *o = add_operation(s, slc_operations_of(job, &job->units[u], s->request->strategies[u]).reduce, u, run);
    if (!o) return false;
    slc_unit_gradient_slots(job, &job->units[u], &o->from_slot, &o->ready_slot);
    o->update_s =
        slc_update_s(job, s->request->times, s->request->strategies[u], slc_run_elements(&job->units[u], run, 1));
    if (!slc_gradient_is_transient(s->request->strategies[u])) o->bytes = 0;
    return true;
}

/* Adds all operations of a unit: reductions, then gathers. */
static bool add_unit(search *s, uint32_t u)
{
    const slc_unit *unit = &s->job->units[u];
    uint32_t runs = (uint32_t)slc_unit_blocks(unit);
    slc_unit_operations of = slc_operations_of(s->job, unit, s->request->strategies[u]);
    slc_window window;
    bool room = true;
    s->first_of[u] = s->count;
    for (uint32_t r = 0; r < runs && unit->trainable; r++) room &= add_reduction(s, u, r);
    for (uint32_t r = 0; r < runs && of.gather_value != SLC_ITEM_KINDS; r++) {
        operation *o = add_operation(s, of.gather_value, u, r);
        if (o) o->bytes = 0;
        room &= o != NULL;
    }
    for (uint32_t w = 0; of.windows && slc_unit_window(s->job, unit, true, w, &window); w++)
        for (uint32_t r = 0; r < runs; r++) {
            operation *o = add_operation(s, SLC_ITEM_GATHER_WINDOW, u, r);
            room &= o != NULL;
            if (!o) continue;
            o->window = w;
            o->last_gap = window.first_slot;
            o->until_slot = window.last_slot;
        }
    return room;
}

/* ---- Lateness ---- */

static bool reduces(const operation *o)
{
    return o->kind == SLC_ITEM_REDUCE_SCATTER || o->kind == SLC_ITEM_ALL_REDUCE;
}

static bool same_kind(const operation *a, const operation *b)
{
    return a->kind == b->kind && a->unit == b->unit && a->window == b->window;
}

/* Returns true if `a` must come before `b` in the pass, once it is known which are late. */
static bool stands_before(const operation *a, const operation *b)
{
    if (a->unit != b->unit) return false;
    if (same_kind(a, b)) return a->late == b->late ? a->run < b->run : a->late;
    if (!reduces(a) || a->run != b->run) return false;
    return b->kind == SLC_ITEM_GATHER_WINDOW ? a->late : a->late == b->late;
}

static void set_gaps(search *s, operation *o)
{
    uint32_t first_use = s->job->units[o->unit].uses[0].layer;
    if (o->kind == SLC_ITEM_GATHER_WINDOW) {
        o->first_gap = 0;
    } else if (reduces(o)) {
        slc_strategy strategy = s->request->strategies[o->unit];
        bool gathered = !slc_updates_whole(strategy) && !slc_gathers_windows(strategy);
        o->first_gap = o->late ? 0 : o->ready_slot + 1;
        o->last_gap = !o->late ? s->slots : gathered ? o->from_slot : first_use;
    } else {
        o->first_gap = o->late ? 0 : s->ops[s->first_of[o->unit] + o->run].ready_slot + 1;
        o->last_gap = o->late ? first_use : s->slots;
    }
}

static void set_lateness_rules(search *s)
{
    s->any_late = false;
    memset(s->needs, 0, sizeof s->needs);
    for (uint32_t i = 0; i < s->count; i++) {
        operation *o = &s->ops[i];
        s->any_late |= reduces(o) && o->late;
        set_gaps(s, o);
        o->before = 0;
        for (uint32_t k = 0; k < s->count; k++)
            if (stands_before(&s->ops[k], o)) o->before |= UINT32_C(1) << k;
        for (uint32_t slot = o->last_gap; slot < s->slots; slot++) s->needs[slot] |= UINT32_C(1) << i;
    }
}

/* ---- Time on the link alone ---- */

/* The first slot starts at 0, and the next pass's first slot before the wanted step is over; so each slot has an
 * earliest and a latest start, and so have the operations around it. */
static void set_window(const search *s, operation *o)
{
    double slack_s = s->wanted_s - s->early_s[s->slots];
    uint32_t first_use = s->job->units[o->unit].uses[0].layer;
    const operation *reduction = &s->ops[s->first_of[o->unit] + o->run];
    bool trainable = s->job->units[o->unit].trainable;
    if (o->kind == SLC_ITEM_GATHER_WINDOW) {
        o->deadline_s = s->early_s[o->last_gap] + (o->last_gap ? slack_s : 0);
        o->release_s = -INFINITY;
        if (trainable)
            o->release_s = s->early_s[reduction->ready_slot + 1] - s->wanted_s + reduction->s + reduction->update_s;
        return;
    }
    double used_s = s->early_s[first_use] + (first_use ? slack_s : 0);
    if (reduces(o)) {
        bool whole = slc_updates_whole(s->request->strategies[o->unit]);
        o->release_s = s->early_s[o->ready_slot + 1] - (o->late ? s->wanted_s : 0);
        double gather_s = whole ? 0 : s->ops[s->first_of[o->unit] + runs_of(s, o->unit) + o->run].s;
        o->deadline_s = used_s + (o->late ? 0 : s->wanted_s) - o->update_s - gather_s;
        double over_s = o->late ? s->early_s[o->from_slot] + slack_s - o->update_s : s->wanted_s;
        if ((o->late || !s->any_late) && over_s < o->deadline_s) o->deadline_s = over_s;
    } else {
        o->release_s =
            s->early_s[reduction->ready_slot + 1] + reduction->s + reduction->update_s - (o->late ? s->wanted_s : 0);
        o->deadline_s = used_s + (o->late ? 0 : s->wanted_s);
    }
}

static void set_windows(search *s)
{
    for (uint32_t i = 0; i < s->count; i++) set_window(s, &s->ops[i]);
}

typedef struct {
    uint32_t done, count;    /* operations in the sequence: one bit each, and their number */
    double link_s;           /* time at which the link has finished all of them */
    double latest_s;         /* time by which the first of them must have started */
    double ends[OPERATIONS]; /* [operations] when each ends, with its update */
    uint32_t next_slot;      /* the first slot whose start is not known yet */
    double slot_end_s;       /* end of the slot before that */
    double slot_ends[SLOTS];
    uint32_t gaps; /* gaps that can be reached with all of them done, one bit each */
} prefix;

/* Starts the slots whose operations are all in the sequence as soon as these have ended. False: a slot is too late. */
static bool settle_slots(const search *s, prefix *p)
{
    double slack_s = s->wanted_s - s->early_s[s->slots];
    while (p->next_slot < s->slots && !(s->needs[p->next_slot] & ~p->done)) {
        double start_s = p->slot_end_s;
        for (uint32_t i = 0; i < s->count; i++)
            if (s->needs[p->next_slot] >> i & 1 && p->ends[i] > start_s) start_s = p->ends[i];
        if (start_s > s->early_s[p->next_slot] + (p->next_slot ? slack_s : 0)) return false;
        p->slot_end_s = start_s + s->slot_s[p->next_slot];
        p->slot_ends[p->next_slot++] = p->slot_end_s;
    }
    return true;
}

/* Appends operation `i` to the sequence. False: a deadline is missed. */
static bool append_time(const search *s, prefix *p, uint32_t i)
{
    const operation *o = &s->ops[i];
    double start_s = fmax(p->link_s, o->release_s);
    if (reduces(o) && !o->late && p->next_slot > o->ready_slot) start_s = fmax(start_s, p->slot_ends[o->ready_slot]);
    for (uint32_t k = 0; k < s->count; k++)
        if (o->before >> k & 1 && reduces(&s->ops[k]) && !reduces(o)) start_s = fmax(start_s, p->ends[k]);
    double end_s = start_s + o->s;
    if (end_s > o->deadline_s) return false;
    if (!p->count) p->latest_s = o->deadline_s - o->s;
    p->link_s = end_s;
    p->ends[i] = end_s + o->update_s;
    p->done |= UINT32_C(1) << i;
    p->count++;
    return settle_slots(s, p);
}

/* Returns true if the work that the link must do between two moments fits between them. */
static bool load_fits(const search *s, const prefix *p, double from_s, double until_s, double end_s)
{
    double load_s = 0;
    for (uint32_t k = 0; k < s->count; k++) {
        const operation *o = &s->ops[k];
        if (!(p->done >> k & 1) && o->release_s >= from_s && fmin(o->deadline_s, end_s) <= until_s) load_s += o->s;
    }
    return load_s <= 0 || fmax(p->link_s, from_s) + load_s <= until_s;
}

/* Returns true if the remaining operations can be in time, judging by the work between every release and every
 * deadline. The bound is optimistic: operations may be interrupted. */
static bool rest_in_time(const search *s, const prefix *p)
{
    double end_s = p->count ? p->latest_s + s->wanted_s : INFINITY;
    for (uint32_t i = 0; i < s->count; i++) {
        if (p->done >> i & 1) continue;
        double until_s = fmin(s->ops[i].deadline_s, end_s);
        if (!load_fits(s, p, -INFINITY, until_s, end_s)) return false;
        for (uint32_t k = 0; k < s->count; k++)
            if (!(p->done >> k & 1) && s->ops[k].release_s > p->link_s &&
                !load_fits(s, p, s->ops[k].release_s, until_s, end_s))
                return false;
    }
    return true;
}

/* Checks the whole sequence again, in which the first operation may not start before the last one of the previous pass
 * has ended. */
static bool sequence_in_time(const search *s)
{
    double from_s = -INFINITY;
    for (int round = 0; round < 50; round++) {
        prefix p = {.link_s = from_s};
        double first_s = 0;
        if (!settle_slots(s, &p)) return false;
        for (uint32_t k = 0; k < s->count; k++) {
            if (!append_time(s, &p, s->sequence[k])) return false;
            if (!k) first_s = p.link_s - s->ops[s->sequence[0]].s;
        }
        if (p.link_s <= first_s + s->wanted_s * (1 + 1e-12)) return true;
        from_s = p.link_s - s->wanted_s;
    }
    return true; /* not decided; the simulator will */
}

/* ---- Memory ---- */

/* Bytes of operations' buffers during slot `slot`, or (in_gap) in the gap before it, with the operations `done`. */
static int64_t alive(const search *s, uint32_t done, uint32_t slot, bool in_gap)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const operation *o = &s->ops[i];
        bool is_done = done >> i & 1, begun = in_gap ? o->from_slot < slot : o->from_slot <= slot;
        bool lives = reduces(o) ? (o->late ? begun || !is_done : begun && !is_done) : is_done && o->until_slot >= slot;
        if (lives) bytes += (int64_t)o->bytes;
    }
    return bytes;
}

static bool slot_fits(const search *s, uint32_t done, uint32_t slot)
{
    return !(s->needs[slot] & ~done) && s->at_slot[slot] + alive(s, done, slot, false) <= (int64_t)s->request->limit;
}

/* A reduction's gradient is alive until its update, a gather's values from its start. */
static bool operation_fits(const search *s, uint32_t done, uint32_t i, uint32_t gap)
{
    const operation *o = &s->ops[i];
    uint32_t with = reduces(o) ? done : done | UINT32_C(1) << i;
    return o->first_gap <= gap && gap <= o->last_gap &&
           s->at_gap[gap] + alive(s, with, gap, true) <= (int64_t)s->request->limit;
}

/* Adds the gaps that can be reached from `gaps` by passing slots. */
static uint32_t over_slots(const search *s, uint32_t done, uint32_t gaps)
{
    for (uint32_t slot = 0; slot < s->slots; slot++)
        if (gaps >> slot & 1 && !(gaps >> (slot + 1) & 1) && slot_fits(s, done, slot))
            gaps |= UINT32_C(1) << (slot + 1);
    return gaps;
}

static bool append_memory(const search *s, prefix *p, uint32_t done_before, uint32_t i)
{
    uint32_t gaps = 0;
    for (uint32_t gap = 0; gap <= s->slots; gap++)
        if (p->gaps >> gap & 1 && operation_fits(s, done_before, i, gap)) gaps |= UINT32_C(1) << gap;
    p->gaps = over_slots(s, p->done, gaps);
    return p->gaps;
}

/* ---- The lower level: ways through the lattice ---- */

static void write_operation(search *s, const operation *o)
{
    slc_order_run(&s->order, o->kind, o->late, 0, o->unit, o->window, o->run, 1);
    if (reduces(o)) slc_order_run(&s->order, SLC_ITEM_UPDATE, o->late, 0, o->unit, 0, o->run, 1);
}

static void write_way(search *s)
{
    s->order.count = 0;
    uint32_t next = 0;
    slc_order_run(&s->order, SLC_ITEM_AGREE, false, 0, SLC_NONE, 0, 0, 0);
    for (uint32_t gap = 0; gap <= s->slots; gap++) {
        while (next < s->count && s->gap_of[next] == gap) write_operation(s, &s->ops[s->sequence[next++]]);
        if (gap < s->slots) slc_order_slot(&s->order, 0, gap);
    }
    slc_order_settle_agreement(&s->order, s->job);
    if (s->order.failed) s->status = slc_error(SLUICE_ERR_MEMORY, "order");
}

static void want(search *s, double best_s)
{
    s->wanted_s = best_s * (1 - s->request->worth);
    set_windows(s);
}

static void judge(search *s)
{
    const slc_every_order_request *r = s->request;
    slc_scheduling in = {.job = r->job, .strategies = r->strategies, .times = r->times, .limit = r->limit};
    slc_plan *plan = NULL;
    slc_forecast forecast;
    uint64_t arena;
    write_way(s);
    const slc_trying trying = {.tries = PACKING_TRIES};
    if (!s->status) s->status = slc_plan_try(&in, &s->order, &slc_scheduler_ilp, &trying, &plan, &arena, &forecast);
    s->answer->packed++;
    if (s->status) return;
    if (!plan) {
        s->answer->refused++;
        return;
    }
    bool better = forecast.step_s < s->wanted_s;
    if (better) s->status = slc_plan_validate(r->job, plan);
    if (better && !s->status) {
        slc_plan_destroy(s->answer->plan);
        s->answer->plan = plan;
        s->answer->step_s = forecast.step_s;
        want(s, forecast.step_s);
        return;
    }
    slc_plan_destroy(plan);
}

static void look_at_clock(search *s)
{
    if (++s->nodes % LOOK_AT_CLOCK || !s->request->deadline_ns) return;
    s->stop |= slc_clock_ns() > s->request->deadline_ns;
}

static void ways(search *s, uint32_t next, uint32_t done, uint32_t gap, bool *enough);

static void way_on(search *s, uint32_t next, uint32_t done, uint32_t gap, bool *enough)
{
    if (next == s->count || !operation_fits(s, done, s->sequence[next], gap)) return;
    s->gap_of[next] = gap;
    ways(s, next + 1, done | UINT32_C(1) << s->sequence[next], gap, enough);
}

/* Returns true if the slot before the last gather, or after the next reduction, would leave everything else as it is
 * with less memory. A packing for the longer lives is then also one for the shorter ones. */
static bool gains_nothing(const search *s, uint32_t next, uint32_t done, uint32_t gap)
{
    if (next && s->gap_of[next - 1] == gap) {
        uint32_t i = s->sequence[next - 1], without = done & ~(UINT32_C(1) << i);
        bool over = s->ops[i].kind == SLC_ITEM_GATHER_WINDOW && s->ops[i].last_gap > gap;
        if (over && slot_fits(s, without, gap)) return true;
    }
    return next < s->count && reduces(&s->ops[s->sequence[next]]) && operation_fits(s, done, s->sequence[next], gap);
}

/* Tries all ways on from `gap` with `next` operations done, those first that keep memory for the shortest time. An
 * operation that keeps no memory is only tried on one side of a slot. Ends when this sequence can give nothing
 * faster. */
static void ways(search *s, uint32_t next, uint32_t done, uint32_t gap, bool *enough)
{
    look_at_clock(s);
    if (s->stop || s->status || *enough) return;
    if (next == s->count && gap == s->slots) {
        double wanted_s = s->wanted_s;
        judge(s);
        if (s->wanted_s < wanted_s) *enough = !sequence_in_time(s);
        return;
    }
    const operation *o = next < s->count ? &s->ops[s->sequence[next]] : NULL;
    bool gathers_window = o && o->kind == SLC_ITEM_GATHER_WINDOW;
    bool over =
        gap < s->slots && slot_fits(s, done, gap) && (s->request->every_way || !gains_nothing(s, next, done, gap));
    bool only_here = o && !o->bytes && operation_fits(s, done, s->sequence[next], gap);
    if (!gathers_window) way_on(s, next, done, gap, enough);
    if (!only_here && over) ways(s, next, done, gap + 1, enough);
    if (gathers_window) way_on(s, next, done, gap, enough);
}

/* ---- The upper level: sequences ---- */

static void sequences(search *s, const prefix *before)
{
    look_at_clock(s);
    if (s->stop || s->status) return;
    if (before->count == s->count) {
        bool enough = false;
        if (!(before->gaps >> s->slots & 1) || !sequence_in_time(s)) return;
        s->answer->orders++;
        ways(s, 0, 0, 0, &enough);
        return;
    }
    if (!rest_in_time(s, before)) return;
    for (uint32_t i = 0; i < s->count; i++) {
        if (before->done >> i & 1 || s->ops[i].before & ~before->done) continue;
        prefix p = *before;
        if (!append_time(s, &p, i) || !append_memory(s, &p, before->done, i)) continue;
        s->sequence[before->count] = i;
        sequences(s, &p);
    }
}

static void with_this_lateness(search *s)
{
    set_lateness_rules(s);
    set_windows(s);
    prefix start = {.link_s = -INFINITY, .gaps = 1};
    if (s->early_s[s->slots] >= s->wanted_s || s->work_s >= s->wanted_s) return;
    start.gaps = over_slots(s, 0, 1);
    if (settle_slots(s, &start)) sequences(s, &start);
}

/* Late runs are the last ones of a unit. A value whose reduction is late is also gathered late. */
static void choose_lateness(search *s, uint32_t u)
{
    if (s->stop || s->status) return;
    if (u == s->job->unit_count) {
        with_this_lateness(s);
        return;
    }
    uint32_t runs = runs_of(s, u), first = s->first_of[u];
    bool gathers =
        runs && slc_operations_of(s->job, &s->job->units[u], s->request->strategies[u]).gather_value != SLC_ITEM_KINDS;
    for (uint32_t reduced = 0; reduced <= runs; reduced++)
        for (uint32_t gathered = 0; gathered <= (gathers ? reduced : 0); gathered++) {
            for (uint32_t r = 0; r < runs; r++) s->ops[first + r].late = r >= reduced;
            for (uint32_t r = 0; gathers && r < runs; r++) s->ops[first + runs + r].late = r >= gathered;
            choose_lateness(s, u + 1);
        }
}

static bool is_for_us(const slc_every_order_request *r)
{
    const slc_job *job = r->job;
    const slc_link *link = &r->times->link;
    bool job_is = job->micro_batches == 1 && !job->each && !job->barrier && slc_job_slots(job) <= SLOTS &&
                  job->unit_count <= SLC_EVERY_ORDER_UNITS && r->limit <= INT64_MAX && !slc_job_splits(job);
    for (uint32_t u = 0; u < job->unit_count; u++) job_is &= !slc_exchanges(r->strategies[u]);
    return job_is && link->kappa == 0 && link->sigma == 1 && !link->thread_moves;
}

sluice_status slc_every_order(const slc_every_order_request *request, slc_every_order_answer *answer)
{
    *answer = (slc_every_order_answer){0};
    if (!is_for_us(request))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "every order: give one micro-batch without barrier, no onebit, nothing tied that is split by "
                         "its uses, at most %d slots, and times where nothing slows anything down",
                         SLOTS);
    search s = {.request = request, .answer = answer, .job = request->job, .slots = slc_job_slots(request->job)};
    bool room = true;
    for (uint32_t u = 0; u < s.job->unit_count; u++) room &= add_unit(&s, u);
    if (!room) return slc_error(SLUICE_ERR_ARGUMENT, "every order: more than %d operations", OPERATIONS);
    add_fixed(&s);
    for (uint32_t i = 0; i < s.slots; i++) {
        s.slot_s[i] = slc_slot_s(s.job, request->times, NULL, i);
        s.early_s[i + 1] = s.early_s[i] + s.slot_s[i];
    }
    s.wanted_s = request->faster_than_s * (1 - request->worth);
    choose_lateness(&s, 0);
    answer->complete = request->every_way && !s.stop && !s.status;
    slc_order_fini(&s.order);
    if (!s.status) return SLUICE_OK;
    slc_plan_destroy(answer->plan);
    answer->plan = NULL;
    return s.status;
}
