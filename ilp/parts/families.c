/* The families of a unit: each operation, the strategies under which it moves, its time, and its legal positions.
 * ilp/slot_model_test.c covers this file. */
#include "ilp/parts/slot_parts.h"

#include "lib/plan/left_out.h"

#include <math.h>

enum {
    DP = 1 << SLC_DP,
    OSS = 1 << SLC_OSS,
    SDP = 1 << SLC_SDP,
    FSDP = 1 << SLC_FSDP,
    ONEBIT = 1 << SLC_ONEBIT,
};

typedef struct {
    const slc_slot_model_parts *parts;
    const slc_unit *unit;
    uint32_t number;
    uint8_t options;
    uint32_t cycle;                         /* slots of a micro-batch */
    uint32_t first_use;                     /* slot of micro-batch 0 that reads the values first */
    uint32_t gradient_first, gradient_last; /* slots of one micro-batch */
    double keeps;                           /* the probability with which a step keeps the unit: times are means */
    uint64_t updates; /* elements whose update is charged with the family: the unit's own; ROWS: the partner's */
    uint32_t updated; /* first position at which new values may be ready */
    slc_flow_family *out;
    uint32_t count;
} unit_families;

static void add_family(unit_families *s, slc_flow_family family)
{
    family.unit = s->number;
    family.strategies &= s->options;
    family.seconds *= s->keeps;
    family.thread_s *= s->keeps;
    if (!family.strategies) return;
    if (s->out) s->out[s->count] = family;
    s->count++;
}

static double operation_s(const unit_families *s, slc_item_kind kind)
{
    return slc_operation_s(s->parts->job, s->parts->times, kind, s->unit, s->unit->elements);
}

/* The least that an update on the compute lane costs a step, in seconds of the link. It lengthens the step by all of
 * its time, c. But communication that would be exposed may run during the update, at most c / (sigma - kappa) of it,
 * and then costs kappa a second instead of 1. So at least c (sigma - 1) / (sigma - kappa) is left. */
static double computed_update_s(const unit_families *s, slc_strategy strategy)
{
    const slc_times *times = s->parts->times;
    const slc_link *link = &times->link;
    double update_s = slc_computed_update_s(s->parts->job, times, strategy, s->updates);
    bool hides = times->update_compute_s_per_element > 0 && link->kappa < 1;
    return hides ? update_s * (link->sigma - 1) / (link->sigma - link->kappa) : update_s;
}

/* An update holds the link up only if the communication thread itself moves the bytes, and never costs more than on the
 * compute lane. */
static double held_up_s(const unit_families *s, slc_strategy strategy)
{
    if (!s->parts->times->link.thread_moves) return 0;
    double on_thread = slc_update_s(s->parts->job, s->parts->times, strategy, s->updates);
    double on_compute = computed_update_s(s, strategy);
    return on_compute < on_thread ? on_compute : on_thread;
}

/* Returns the seconds of the link that an update adds to the operation that it is charged with. That is the reduction;
 * with a barrier the gather, if there is one; for dp with `each` the gather of the gradient; for a SPLIT unit the
 * gather of rows. For bounds nothing is added, because updates have families of their own there. */
static double update_s(const unit_families *s, slc_strategy strategy)
{
    return s->parts->bounding ? 0 : held_up_s(s, strategy);
}

/* Sets the first and the last position for the reduction of a micro-batch's gradient. The rows of a look-up are
 * gathered for the next micro-batch only after their gradients, and those of the rest of the parameter, are reduced. */
static void set_reduction_range(const unit_families *s, uint32_t m, slc_flow_family *reduce)
{
    const slc_unit *reader = slc_first_reader(s->parts->job, s->unit);
    uint32_t first_read = slc_forward_slot(reader->uses[0].layer);
    uint32_t needed = slc_looks_up(reader) ? first_read : s->gradient_first;
    reduce->first = 2 * (m * s->cycle + s->gradient_last) + 1;
    reduce->last = 2 * (s->parts->slots + first_read) - 1;
    if (slc_reduced_in_step(s->parts, s->unit)) reduce->last = 2 * s->parts->slots - 1;
    if (m + 1 < s->parts->micro_batches) reduce->last = 2 * ((m + 1) * s->cycle + needed) - 1;
}

/* Between the last slot of one step and the first of the next, the reduction of a look-up's rows, the update of their
 * parameter and the gather of rows run one after another. While the bytes move, the thread has nothing else to do,
 * unless there are several look-ups or exchanges. */
static bool has_thread_wait(const unit_families *s)
{
    const slc_job *job = s->parts->job;
    uint32_t look_ups = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) look_ups += slc_looks_up(&job->units[u]);
    return slc_looks_up(s->unit) && s->unit->trainable && look_ups == 1 && !job->compressed &&
           !s->parts->times->link.thread_moves && s->parts->times->update_s_per_element > 0 && !s->unit->uses[0].layer;
}

static void add_reductions(unit_families *s)
{
    const slc_job *job = s->parts->job;
    uint32_t last = s->parts->micro_batches - 1;
    for (uint32_t m = job->each ? 0 : last; m <= last; m++) {
        slc_flow_family reduce = {.kind = SLC_FLOW_REDUCE, .micro_batch = m};
        set_reduction_range(s, m, &reduce);
        reduce.awaited = m == last && has_thread_wait(s);

        bool updates = m == last && !slc_reduced_in_step(s->parts, s->unit);
        reduce.strategies = SDP | FSDP;
        reduce.seconds = operation_s(s, SLC_ITEM_REDUCE_SCATTER) + (updates ? update_s(s, SLC_SDP) : 0);
        add_family(s, reduce);
        reduce.strategies = OSS;
        add_family(s, reduce);
        reduce.strategies = DP;
        reduce.seconds = job->each ? operation_s(s, SLC_ITEM_REDUCE_SCATTER)
                                   : operation_s(s, SLC_ITEM_ALL_REDUCE) + update_s(s, SLC_DP);
        add_family(s, reduce);
    }
}

/* The gap after the last slot of the step that adds to the gradient. */
static uint32_t after_gradient(const unit_families *s)
{
    return 2 * ((s->parts->micro_batches - 1) * s->cycle + s->gradient_last) + 1;
}

static void add_value_gathers(unit_families *s)
{
    slc_flow_family gather = {.kind = SLC_FLOW_GATHER_VALUE,
                              .strategies = OSS | SDP,
                              .micro_batch = s->parts->micro_batches - 1,
                              .seconds = operation_s(s, SLC_ITEM_GATHER_VALUE),
                              .first = s->updated,
                              .last = 2 * (s->parts->slots + s->first_use) - 1};
    if (s->parts->job->barrier && slc_first_reader(s->parts->job, s->unit) == s->unit)
        gather.seconds += update_s(s, SLC_SDP);
    add_family(s, gather);
    if (!s->parts->job->each) return;
    gather.strategies = DP; /* gathers the gradient, which does not wait for the barrier */
    gather.seconds = operation_s(s, SLC_ITEM_GATHER_GRADIENT) + update_s(s, SLC_DP);
    gather.first = after_gradient(s);
    add_family(s, gather);
}

/* A bound lets an update run anywhere after the step's gradients that it needs and before the parameter's first reader
 * in the next step, whatever lies between its reduction and its gather. */
static void add_updates(unit_families *s)
{
    const slc_slot_model_parts *p = s->parts;
    const slc_unit *reader = slc_first_reader(p->job, s->unit);
    slc_flow_family update = {.kind = SLC_FLOW_UPDATE,
                              .micro_batch = p->micro_batches - 1,
                              .first = s->updated,
                              .last = 2 * (p->slots + slc_forward_slot(reader->uses[0].layer)) - 1};
    static const uint8_t sharing[] = {DP, OSS | SDP | FSDP};
    static const slc_strategy like[] = {SLC_DP, SLC_SDP};
    for (int i = 0; p->bounding && !slc_looks_up(s->unit) && i < 2; i++) {
        update.strategies = sharing[i];
        update.seconds = held_up_s(s, like[i]);
        if (update.seconds > 0) add_family(s, update);
    }
}

/* Both passes hold the link up if an update does; otherwise they are the thread's work, at the same time as the
 * link's. For bounds they are a family of their own, for they need not be where the exchange is. */
static void add_exchange(unit_families *s)
{
    const slc_slot_model_parts *p = s->parts;
    double passes = slc_passes_s(p->times, s->unit->elements);
    slc_flow_family exchange = {.kind = SLC_FLOW_EXCHANGE,
                                .strategies = ONEBIT,
                                .micro_batch = p->micro_batches - 1,
                                .seconds = operation_s(s, SLC_ITEM_EXCHANGE),
                                .first = after_gradient(s),
                                .last = 2 * (p->slots + s->first_use) - 1};
    if (slc_exchange_waits(p->job)) exchange.first = p->complete;
    slc_flow_family apart = exchange, *with = p->bounding ? &apart : &exchange;
    apart.kind = SLC_FLOW_UPDATE;
    apart.seconds = 0;
    *(p->times->link.thread_moves || p->request->in_series ? &with->seconds : &with->thread_s) += passes;
    add_family(s, exchange);
    if (p->bounding && passes > 0) add_family(s, apart);
}

/* Charges the first gather of a step with the update before it. With a barrier that is the unit's own update. For rows
 * it is the update of their parameter; if the first slot needs the rows, this update takes its time whatever moves the
 * bytes. */
static void add_update_before(const unit_families *s, slc_flow_family *gather)
{
    const slc_slot_model_parts *p = s->parts;
    if (!s->unit->trainable || slc_first_reader(p->job, s->unit) != s->unit) return;
    if (!slc_looks_up(s->unit)) {
        if (p->job->barrier) gather->seconds += update_s(s, SLC_FSDP);
        return;
    }
    gather->seconds += update_s(s, SLC_SDP);
    if (!p->times->link.thread_moves && !s->unit->uses[0].layer) /* on the faster of the two lanes */
        gather->thread_s = fmin(slc_update_s(p->job, p->times, SLC_SDP, s->updates),
                                slc_computed_update_s(p->job, p->times, SLC_SDP, s->updates));
    gather->awaited = has_thread_wait(s);
}

/* Returns the first position that a bound allows for a window which micro-batch m gathers after the step has begun.
 * That may be at once, unless the micro-batch before has the same window in the same place. */
static uint32_t first_free(const unit_families *s, uint32_t m, uint32_t w, const slc_window *window)
{
    const slc_job *job = s->parts->job;
    bool shared = m && slc_gathered_number(job, s->unit, m, w) == slc_gathered_number(job, s->unit, m - 1, w);
    return shared ? 2 * ((m - 1) * s->cycle + window->last_slot) + 1 : 0;
}

/* The first window of a micro-batch is not gathered before the last one of the previous micro-batch has begun; the
 * others may be gathered as soon as their own micro-batch has, since each window has a place of its own. (An order may
 * gather them earlier still, so bounds allow it.) Which rows a look-up touches is known when the previous micro-batch
 * ends. */
static void add_windows(unit_families *s)
{
    const slc_slot_model_parts *p = s->parts;
    slc_window window, before, next;
    const uint32_t count = slc_unit_window_count(p->job, s->unit, true);
    for (uint32_t m = 0; m < p->micro_batches; m++) {
        slc_unit_window(p->job, s->unit, true, count - 1, &before);
        for (uint32_t w = 0; slc_unit_window(p->job, s->unit, true, w, &window); w++, before = next) {
            next = window;
            uint32_t origin =
                m * s->cycle + (m || w ? 0 : p->slots); /* of this micro-batch, in the count of positions */
            uint32_t before_origin = w ? origin : origin - s->cycle;
            slc_flow_family gather = {.kind = SLC_FLOW_WINDOW, .strategies = FSDP, .micro_batch = m, .window = w};
            gather.first =
                count > 1 ? 2 * (before_origin + before.first_slot) : 2 * (before_origin + before.last_slot) + 1;
            if (w) gather.first = 2 * origin;
            if (p->bounding) gather.first = m || w ? first_free(s, m, w, &window) : 0;
            gather.last = 2 * (origin + window.first_slot) - 1;
            gather.seconds = operation_s(s, SLC_ITEM_GATHER_WINDOW);
            if (!m && !w) add_update_before(s, &gather);
            /* A pass gathers only for itself: a step's gathers are never in the previous pass, and the updates before
             * them either end there or are late in this one. */
            bool begins = (!m && !w) || (m && slc_looks_up(s->unit));
            if (begins && gather.first < 2 * origin - 1) gather.first = 2 * origin - 1;
            add_family(s, gather);
        }
    }
}

uint32_t slc_first_update(const slc_slot_model_parts *parts, const slc_unit *unit)
{
    uint32_t first, last, final = parts->micro_batches - 1;
    if (parts->bounding ? parts->job->barrier : slc_updated_last(parts->job, unit)) return parts->complete;
    slc_unit_gradient_slots(parts->job, slc_first_reader(parts->job, unit), &first, &last);
    return 2 * (final * slc_job_slots(parts->job) + last) + 1;
}

uint32_t slc_unit_families(const slc_slot_model_parts *parts, uint32_t unit, slc_flow_family *out)
{
    unit_families s = {.parts = parts,
                       .unit = &parts->job->units[unit],
                       .number = unit,
                       .options = parts->options[unit],
                       .cycle = slc_job_slots(parts->job),
                       .keeps = slc_unit_keeps(&parts->job->units[unit], parts->times->keeps),
                       .updates = parts->job->units[slc_parameter_unit(parts->job, unit)].elements,
                       .first_use = slc_forward_slot(parts->job->units[unit].uses[0].layer),
                       .out = out};
    if (s.unit->trainable) {
        slc_unit_gradient_slots(parts->job, s.unit, &s.gradient_first, &s.gradient_last);
        s.updated = slc_first_update(parts, s.unit);
        add_reductions(&s);
        add_value_gathers(&s);
        add_updates(&s);
        add_exchange(&s);
    }
    add_windows(&s);
    return s.count;
}
