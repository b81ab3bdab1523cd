/* Works out what must have ended before an item may start: the items that make its data, the last users of a resident
 * buffer that it overwrites, and its tickets (earlier claims at the same addresses). Lanes run in order, so only the
 * latest wait for each lane is kept, for this pass and for the previous one. Late items count as lanes of their own: if
 * a pass leaves them out, the waits for the items before them must not be lost. So an item has at most eight waits, and
 * two more for each end of a channel.
 * make_plan_test.c covers this file. */
#include "sched/layout/parts.h"
#include "sched/scheduler.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum {
    COMPUTE,
    OPERATION,
    LATE_COMPUTE,
    LATE_OPERATION,
    CHANNELS, /* the first end of a channel; the others follow */
    LANES = CHANNELS + SLC_STAGE_CHANNELS_MAX,
    WAITS = 2 * LANES
};

typedef struct {
    const slc_job *job;
    const slc_plan *plan;
    const slc_program *program;
    const slc_places *places;
    bool evaluate;
    int lanes;              /* lanes that the job has; the others of `latest` are not looked at */
    uint32_t item;          /* the item whose waits are collected */
    uint32_t latest[WAITS]; /* the latest item of each lane in this pass, then in the previous one; SLC_NONE: none */
    bool too_late;          /* it needs an operation of its step that is late */
} waits;

static int lane_of(const slc_item *item)
{
    if (slc_is_message(item->kind)) return CHANNELS + (int)item->index;
    return (slc_on_compute_lane(item) ? COMPUTE : OPERATION) + (item->late ? LATE_COMPUTE : 0);
}

/* Begins to collect the waits of an item. */
static void begin_item(waits *w, uint32_t item)
{
    w->item = item;
    w->too_late = false;
    for (int lane = 0; lane < w->lanes; lane++) w->latest[lane] = w->latest[LANES + lane] = SLC_NONE;
}

static waits waits_at(const slc_places *places, const slc_job *job, const slc_plan *plan)
{
    return (waits){.job = job,
                   .plan = plan,
                   .program = places->program,
                   .places = places,
                   .evaluate = places->program == &plan->evaluate,
                   .lanes = CHANNELS + (int)job->channel_count};
}

static void wait_for(waits *w, uint32_t item, bool previous)
{
    if (item == SLC_NONE) return;
    int lane = lane_of(&w->program->items[item]);
    uint32_t *latest = &w->latest[(previous ? LANES : 0) + lane];
    if (*latest == SLC_NONE || *latest < item) *latest = item;
}

/* Waits for `run`, an operation of `mine`'s own step. If `mine` is late and `run` is not, `run` is in the previous
 * pass. `mine` NULL: an item that is not late. */
static void wait_for_run(waits *w, const slc_item *run, const slc_item *mine)
{
    bool late = mine && mine->late;
    wait_for(w, (uint32_t)(run - w->program->items), late && !run->late);
    w->too_late |= run->late && !late;
}

/* Waits for the runs of a kind, of `mine`'s own step, that share blocks with `mine`. `mine` NULL: for all of them. */
static void wait_for_runs(waits *w, slc_item_kind kind, uint32_t m, uint32_t unit, const slc_item *mine)
{
    slc_runs runs = mine && mine->block_count ? slc_find_sharing(w->places, kind, m, mine)
                                              : slc_find_runs(w->places, kind, m, unit, 0);
    for (size_t r = 0; r < runs.count; r++) wait_for_run(w, runs.items[r], mine);
}

/* Waits for the runs of a kind, of the previous step, that share blocks with `mine`: in the previous pass, or late in
 * this one. `mine` NULL: for all of them. */
static void wait_for_step_before(waits *w, slc_item_kind kind, uint32_t unit, const slc_item *mine)
{
    const uint32_t last = w->job->micro_batches - 1;
    slc_runs runs =
        mine ? slc_find_sharing(w->places, kind, last, mine) : slc_find_runs(w->places, kind, last, unit, 0);
    for (size_t r = 0; r < runs.count; r++)
        wait_for(w, (uint32_t)(runs.items[r] - w->program->items), !runs.items[r]->late);
}

static uint32_t window_of(const slc_job *job, const slc_unit *unit, bool with_backward, uint32_t slot)
{
    slc_window window;
    for (uint32_t w = 0; slc_unit_window(job, unit, with_backward, w, &window); w++)
        if (window.first_slot <= slot && slot <= window.last_slot) return w;
    return SLC_NONE;
}

static void wait_for_value(waits *w, uint32_t u, uint32_t m, uint32_t slot)
{
    const slc_unit *unit = &w->job->units[u];
    slc_strategy strategy = w->plan->strategies[u];
    if (slc_gathers_windows(strategy)) {
        uint32_t window = window_of(w->job, unit, !w->evaluate, slot);
        slc_runs runs = slc_find_runs(w->places, SLC_ITEM_GATHER_WINDOW, slc_gathered_in(unit, m), u, window);
        for (size_t r = 0; r < runs.count; r++) wait_for(w, (uint32_t)(runs.items[r] - w->program->items), false);
    } else if (unit->trainable && !w->evaluate)
        wait_for_step_before(w, slc_updates_whole(strategy) ? SLC_ITEM_UPDATE : SLC_ITEM_GATHER_VALUE, u, NULL);
}

/* A resident gradient may be written again only after its last reader. */
static void wait_for_gradient_place(waits *w, uint32_t u, uint32_t m)
{
    slc_strategy strategy = w->plan->strategies[u];
    if (slc_gradient_is_transient(strategy)) return;
    if (w->job->each && m) wait_for_runs(w, SLC_ITEM_REDUCE_SCATTER, m - 1, u, NULL);
    if (!m) wait_for_step_before(w, SLC_ITEM_UPDATE, u, NULL);
}

static void wait_for_message(waits *w, uint32_t channel, uint32_t micro_batch)
{
    const slc_item_kind kind = w->job->channels[channel].receives ? SLC_ITEM_RECEIVE : SLC_ITEM_SEND;
    slc_runs runs = slc_find_runs(w->places, kind, micro_batch, SLC_NONE, channel);
    for (size_t r = 0; r < runs.count; r++) wait_for(w, (uint32_t)(runs.items[r] - w->program->items), false);
}

/* A slot waits for the messages that it reads, and for those that send what it releases. */
static void slot_messages(waits *w, const slc_item *item)
{
    const slc_job *job = w->job;
    for (uint32_t c = 0; c < job->channel_count && !w->evaluate; c++)
        if (job->channels[c].receives && job->channels[c].slot == item->slot) wait_for_message(w, c, item->micro_batch);
    for (uint32_t a = 0; a < job->activation_count && job->turns && !w->evaluate; a++)
        if (job->turns[a].send && job->activations[a].last_slot == item->slot &&
            job->channels[job->turns[a].send - 1].slot != item->slot)
            wait_for_message(w, job->turns[a].send - 1, item->micro_batch);
}

/* A message waits for the slot that makes it, or for the values that it is made of. */
static void message_waits(waits *w, const slc_item *item)
{
    const slc_stage_channel *channel = &w->job->channels[item->index];
    if (channel->receives) return;
    if (channel->slot != SLC_NONE)
        wait_for(w, slc_find_slot(w->places, item->micro_batch, channel->slot), false);
    else
        wait_for_step_before(
            w, slc_updates_whole(w->plan->strategies[channel->unit]) ? SLC_ITEM_UPDATE : SLC_ITEM_GATHER_VALUE,
            channel->unit, NULL);
}

/* A table is reduced after the gradients of its rows have come, and updated after its rows have been sent. */
static void row_waits(waits *w, const slc_item *item)
{
    const bool reduces = slc_is_reduction(item->kind);
    for (uint32_t c = 0; c < w->job->channel_count; c++)
        if (w->job->channels[c].unit == item->unit && w->job->channels[c].slot == SLC_NONE &&
            w->job->channels[c].receives == reduces && (reduces || item->kind == SLC_ITEM_UPDATE))
            wait_for_message(w, c, w->job->micro_batches - 1);
}

static void slot_waits(waits *w, const slc_item *item)
{
    slot_messages(w, item);

    uint32_t layer = slc_slot_layer(w->job, item->slot);
    bool forward = slc_slot_is_forward(w->job, item->slot);
    for (uint32_t k = w->places->first_user[layer]; k < w->places->first_user[layer + 1]; k++)
        for (uint32_t u = w->places->users[k], i = 0; i < w->job->units[u].use_count; i++) {
            const slc_use *use = &w->job->units[u].uses[i];
            if (use->layer != layer) continue;
            if (!(w->job->units[u].adds_first && !i) && (forward || use->backward_value))
                wait_for_value(w, u, item->micro_batch, item->slot);
            if (!forward && w->job->units[u].trainable) wait_for_gradient_place(w, u, item->micro_batch);
        }
}

static void wait_for_gradient(waits *w, const slc_item *item)
{
    uint32_t first, last;
    slc_unit_gradient_slots(w->job, &w->job->units[item->unit], &first, &last);
    wait_for(w, slc_find_slot(w->places, item->micro_batch, last), item->late);
}

/* Sums are added in the order of micro-batches. */
static void reduction_waits(waits *w, const slc_item *item)
{
    wait_for_gradient(w, item);
    if (w->job->each && item->micro_batch)
        wait_for_runs(w, SLC_ITEM_REDUCE_SCATTER, item->micro_batch - 1, item->unit, item);
}

static void last_reduction(waits *w, uint32_t u, const slc_item *item)
{
    uint32_t last = w->job->micro_batches - 1;
    wait_for_runs(w, SLC_ITEM_REDUCE_SCATTER, last, u, item);
    wait_for_runs(w, SLC_ITEM_ALL_REDUCE, last, u, item);
}

static void agreement_waits(waits *w, const slc_item *item)
{
    uint32_t last = w->job->micro_batches - 1;
    for (uint32_t u = 0; u < w->job->unit_count; u++) {
        last_reduction(w, u, item);
        wait_for_runs(w, SLC_ITEM_INSPECT, last, u, item);
        if (!slc_exchange_waits(w->job)) wait_for_runs(w, SLC_ITEM_COMPRESS, last, u, item);
    }
}

static void wait_for_agreement(waits *w, const slc_item *item)
{
    if (!slc_waits_for_agreement(w->job, w->plan->strategies[item->unit])) return;
    slc_runs agree = slc_find_runs(w->places, SLC_ITEM_AGREE, w->job->micro_batches - 1, SLC_NONE, 0);
    for (size_t r = 0; r < agree.count; r++) wait_for_run(w, agree.items[r], item);
}

static void update_waits(waits *w, const slc_item *item)
{
    uint32_t last = w->job->micro_batches - 1;
    last_reduction(w, item->unit, item);
    wait_for_runs(w, SLC_ITEM_GATHER_GRADIENT, last, item->unit, item);
    wait_for_runs(w, SLC_ITEM_EXCHANGE, last, item->unit, item);
    wait_for_agreement(w, item);
}

/* The caller names the rows of a look-up after the previous micro-batch has been computed, and their lists are in use
 * until that one is reduced. */
static void window_waits(waits *w, const slc_item *item)
{
    uint32_t m = item->micro_batch;
    if (w->evaluate) return;
    wait_for_step_before(w, SLC_ITEM_UPDATE, item->unit, item);
    if (!slc_looks_up(&w->job->units[item->unit])) return;
    if (m) wait_for(w, slc_find_slot(w->places, m - 1, slc_job_slots(w->job) - 1), false);
    if (m && w->job->each) wait_for_runs(w, SLC_ITEM_REDUCE_SCATTER, m - 1, item->unit, NULL);
}

static void partner_waits(waits *w, const slc_item *item)
{
    if (w->evaluate || item->unit == SLC_NONE) return;
    const slc_unit *unit = &w->job->units[item->unit];
    const slc_partner_wait *wait = slc_partner_wait_of(unit, item->kind);
    uint32_t m = item->micro_batch;
    if (!wait) return;
    if (wait->when == SLC_STEP_BEFORE) wait_for_step_before(w, wait->of_partner, unit->partner, NULL);
    if (wait->when == SLC_SAME_MICRO_BATCH) wait_for_runs(w, wait->of_partner, m, unit->partner, NULL);
    if (wait->when == SLC_MICRO_BATCH_BEFORE && m) wait_for_runs(w, wait->of_partner, m - 1, unit->partner, NULL);
}

static void operation_waits(waits *w, const slc_item *item)
{
    uint32_t last = w->job->micro_batches - 1;
    partner_waits(w, item);
    row_waits(w, item);
    switch (item->kind) {
    case SLC_ITEM_SEND: message_waits(w, item); break;
    case SLC_ITEM_REDUCE_SCATTER:
    case SLC_ITEM_ALL_REDUCE: reduction_waits(w, item); break;
    case SLC_ITEM_GATHER_GRADIENT: last_reduction(w, item->unit, item); break;
    case SLC_ITEM_AGREE: agreement_waits(w, item); break;
    case SLC_ITEM_INSPECT:
    case SLC_ITEM_COMPRESS: /* the previous step's update need not be waited for again: the slots of the gradient did */
        wait_for_gradient(w, item);
        last_reduction(w, item->unit, item);
        if (item->kind == SLC_ITEM_COMPRESS) wait_for_agreement(w, item);
        break;
    case SLC_ITEM_EXCHANGE: wait_for_runs(w, SLC_ITEM_COMPRESS, last, item->unit, item); break;
    case SLC_ITEM_UPDATE: update_waits(w, item); break;
    case SLC_ITEM_GATHER_VALUE: wait_for_runs(w, SLC_ITEM_UPDATE, last, item->unit, item); break;
    case SLC_ITEM_GATHER_WINDOW: window_waits(w, item); break;
    default: break;
    }
}

/* The last holder of a range of addresses is the claim that held it last. A new claim waits for that one alone, because
 * it has waited for those before it. But a pass may leave a claim out: a first pass makes no late claims, and a drain
 * makes only those. So three kinds of claims have a last holder each: those that no late item makes or releases
 * (ORDINARY), those that a late item releases (WRAPPING), and those that a late item makes (LATE_FROM). A late item
 * also waits for the ordinary holders that the previous pass left (LEFT_BEFORE). */
enum { ORDINARY, WRAPPING, LATE_FROM, HOLDERS, LEFT_BEFORE = HOLDERS, PLACES };

typedef struct {
    uint64_t *edges; /* where claims begin and end, ascending */
    size_t edge_count;
    size_t *first, *end;      /* [claims] between which edges each lies */
    uint32_t *holder[PLACES]; /* [kinds of holders][ranges between two edges] a claim; SLC_NONE: nobody */
    uint32_t next;            /* the next claim to be made; the claims of earlier items are in `holder` */
} holders;

static uint64_t address(const slc_plan *plan, const slc_claim *claim, uint64_t byte)
{
    return plan->buffers[claim->buffer].offset + byte;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static size_t edge_at(const holders *h, uint64_t address)
{
    const uint64_t *found = bsearch(&address, h->edges, h->edge_count, sizeof address, by_value);
    return (size_t)(found - h->edges);
}

static void hold(holders *h, const slc_program *program, uint32_t claim)
{
    const slc_claim *c = &program->claims[claim];
    uint32_t *holder = h->holder[slc_claim_wraps(program, c)    ? WRAPPING
                                 : program->items[c->from].late ? LATE_FROM
                                                                : ORDINARY];
    for (size_t s = h->first[claim]; s < h->end[claim]; s++) holder[s] = claim;
}

static void holders_fini(holders *h)
{
    for (int p = 0; p < PLACES; p++) free(h->holder[p]);
    free(h->first);
    free(h->edges);
}

/* Makes the holders as the end of a pass leaves them. */
static sluice_status holders_init(holders *h, const slc_plan *plan, const slc_program *program)
{
    size_t room = 2 * (size_t)program->claim_count + 1;
    *h = (holders){.edges = malloc(room * sizeof *h->edges), .first = malloc(room * sizeof *h->first)};
    bool ok = h->edges && h->first;
    for (int p = 0; p < PLACES; p++) ok &= !!(h->holder[p] = malloc(room * sizeof **h->holder));
    if (!ok) {
        holders_fini(h);
        return slc_error(SLUICE_ERR_MEMORY, "no memory for tickets");
    }
    size_t count = 0;
    h->end = h->first + program->claim_count;
    for (uint32_t c = 0; c < program->claim_count; c++) {
        h->edges[count++] = address(plan, &program->claims[c], program->claims[c].first_byte);
        h->edges[count++] = address(plan, &program->claims[c], program->claims[c].end_byte);
    }
    if (count) qsort(h->edges, count, sizeof *h->edges, by_value);
    for (size_t i = 0; i < count; i++)
        if (!i || h->edges[i] != h->edges[i - 1]) h->edges[h->edge_count++] = h->edges[i];
    for (uint32_t c = 0; c < program->claim_count; c++) {
        h->first[c] = edge_at(h, address(plan, &program->claims[c], program->claims[c].first_byte));
        h->end[c] = edge_at(h, address(plan, &program->claims[c], program->claims[c].end_byte));
    }
    for (int p = 0; p < HOLDERS; p++)
        for (size_t s = 0; s < h->edge_count; s++) h->holder[p][s] = SLC_NONE;
    for (uint32_t c = 0; c < program->claim_count; c++) hold(h, program, c);
    memcpy(h->holder[LEFT_BEFORE], h->holder[ORDINARY], h->edge_count * sizeof **h->holder);
    return SLUICE_OK;
}

/* Claims are sorted by the item that makes them, so a holder with a number of at least `first` was made in the previous
 * pass; it also ended there unless it wraps. */
static void tickets(waits *w, holders *h)
{
    uint32_t first = h->next;
    int places = w->program->items[w->item].late ? PLACES : HOLDERS;
    for (uint32_t c = first; c < w->program->claim_count && w->program->claims[c].from == w->item; c++, h->next++) {
        for (size_t s = h->first[c]; s < h->end[c]; s++)
            for (int p = 0; p < places; p++) {
                uint32_t holder = h->holder[p][s];
                if (holder == SLC_NONE) continue;
                const slc_claim *before = &w->program->claims[holder];
                bool earlier = p == LEFT_BEFORE || holder >= first;
                wait_for(w, before->to, earlier && !slc_claim_wraps(w->program, before));
            }
    }
    for (uint32_t c = first; c < h->next; c++) hold(h, w->program, c);
}

/* ---- Waits by the sum of bytes ---- */

typedef struct {
    double limit;
    double *live;     /* [items] bytes in memory while an item runs */
    double *released; /* [items] bytes that are released when an item is over */
} sums;

static sluice_status sums_init(sums *s, const slc_plan *plan, uint64_t limit)
{
    const slc_program *program = &plan->train;
    const uint32_t count = program->item_count;
    *s = (sums){.limit = (double)limit,
                .live = calloc(count + (size_t)2, sizeof *s->live),
                .released = calloc(count + (size_t)1, sizeof *s->released)};
    if (!s->live || !s->released) return slc_error(SLUICE_ERR_MEMORY, "no memory for tickets");
    for (uint32_t k = 0; k < plan->static_count; k++)
        s->live[0] += (double)(plan->statics[k].end_byte - plan->statics[k].first_byte);
    for (uint32_t c = 0; c < program->claim_count; c++) {
        const slc_claim *claim = &program->claims[c];
        const double bytes = (double)(claim->end_byte - claim->first_byte);
        s->live[claim->from] += bytes;
        s->live[claim->to + 1] -= bytes;
        if (slc_claim_wraps(program, claim)) s->live[0] += bytes;
        s->released[claim->to] += bytes;
    }
    for (uint32_t i = 0; i < count; i++) s->live[i + 1] += s->live[i];
    return SLUICE_OK;
}

static void sums_fini(sums *s)
{
    free(s->live);
    free(s->released);
}

/* Looks for the releases that the item must wait for so that it fits: goes back from the item, and passes over the
 * latest releases for as long as it fits without them. The item waits for the release before these, and for the latest
 * one before that on each other lane. */
static void tickets_by_sum(waits *w, const sums *s)
{
    const uint32_t count = w->program->item_count;
    double room = s->limit - s->live[w->item];
    uint64_t lanes = 0;
    for (uint32_t back = 1; back < count && lanes != (UINT64_C(1) << CHANNELS) - 1; back++) {
        const uint32_t at = w->item >= back ? w->item - back : w->item + count - back;
        const uint64_t lane = UINT64_C(1) << lane_of(&w->program->items[at]);
        room -= s->released[at];
        if (room >= 0 || !s->released[at] || lanes & lane) continue;
        wait_for(w, at, at > w->item);
        lanes |= lane;
    }
}

static void wait_for_all_before(waits *w)
{
    bool computes = slc_on_compute_lane(&w->program->items[w->item]);
    for (uint32_t i = w->item; i-- > 0;)
        if (slc_on_compute_lane(&w->program->items[i]) != computes) {
            wait_for(w, i, false);
            return;
        }
    for (uint32_t i = w->program->item_count; i-- > 0;)
        if (slc_on_compute_lane(&w->program->items[i]) != computes) {
            wait_for(w, i, true);
            return;
        }
}

/* Stores an item's waits. The compute lane needs none for its own items, because it runs them in order. */
static sluice_status store_waits(const waits *w, slc_item *item)
{
    size_t count = 0;
    for (int lane = 0; lane < w->lanes; lane++)
        count += (w->latest[lane] != SLC_NONE) + (size_t)(w->latest[LANES + lane] != SLC_NONE);
    item->after = calloc(count + 1, sizeof *item->after);
    if (!item->after) return slc_error(SLUICE_ERR_MEMORY, "no memory for waits");
    for (int previous = 0; previous < 2; previous++)
        for (int lane = 0; lane < w->lanes; lane++) {
            const uint32_t latest = w->latest[previous * LANES + lane];
            const bool computes = lane == COMPUTE || lane == LATE_COMPUTE;
            if (latest == SLC_NONE || (computes && slc_on_compute_lane(item))) continue;
            item->after[item->after_count++] = (slc_after){latest, previous};
        }
    return SLUICE_OK;
}

static bool has_claims(const slc_program *program, uint32_t item, uint32_t *next)
{
    const uint32_t before = *next;
    while (*next < program->claim_count && program->claims[*next].from == item) ++*next;
    return *next > before;
}

/* Adds the waits of all items. A claim waits for those that held its memory before, as `h` tells, or else, without `h`,
 * by the sum of bytes. */
static sluice_status add_waits(waits *w, slc_program *program, bool slots_wait_for_all, holders *h, const sums *s)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < program->item_count; i++) {
        slc_item *item = &program->items[i];
        begin_item(w, i);
        if (item->kind == SLC_ITEM_SLOT)
            slot_waits(w, item);
        else
            operation_waits(w, item);
        if (h)
            tickets(w, h);
        else if (has_claims(program, i, &next))
            tickets_by_sum(w, s);
        if (slots_wait_for_all) wait_for_all_before(w);
        sluice_status status = store_waits(w, item);
        if (status) return status;
    }
    return SLUICE_OK;
}

static slc_program *program_at(const slc_places *places, slc_plan *plan)
{
    return places->program == &plan->evaluate ? &plan->evaluate : &plan->train;
}

static sluice_status add_waits_at(const slc_places *places, const slc_job *job, slc_plan *plan, bool slots_wait_for_all)
{
    holders h;
    waits w = waits_at(places, job, plan);
    sluice_status status = holders_init(&h, plan, places->program);
    if (status) return status;
    status = add_waits(&w, program_at(places, plan), slots_wait_for_all, &h, NULL);
    holders_fini(&h);
    return status;
}

sluice_status slc_plan_add_waits(const slc_job *job, slc_plan *plan, bool slots_wait_for_all, bool evaluate)
{
    slc_places places;
    sluice_status status = slc_places_init(&places, job, evaluate ? &plan->evaluate : &plan->train);
    if (status) return status;
    status = add_waits_at(&places, job, plan, slots_wait_for_all);
    slc_places_fini(&places);
    return status;
}

sluice_status slc_plan_add_waits_by_sum(const slc_job *job, slc_plan *plan, const slc_places *places,
                                        bool slots_wait_for_all, uint64_t limit)
{
    sums s;
    waits w = waits_at(places, job, plan);
    sluice_status status = sums_init(&s, plan, limit);
    if (!status) status = add_waits(&w, &plan->train, slots_wait_for_all, NULL, &s);
    sums_fini(&s);
    return status;
}

/* Checks the needs of data only; tickets need addresses, which an order does not have yet. */
bool slc_plan_order_is_legal(const slc_job *job, const slc_plan *plan, const slc_places *places)
{
    const slc_program *program = &plan->train;
    waits w = waits_at(places, job, plan);
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        begin_item(&w, i);
        if (item->kind == SLC_ITEM_SLOT)
            slot_waits(&w, item);
        else
            operation_waits(&w, item);
        if (w.too_late || (item->late && !slc_may_be_late(job, item))) return false;
        for (int lane = 0; lane < w.lanes; lane++)
            if (w.latest[lane] != SLC_NONE && w.latest[lane] >= i) return false;
    }
    return true;
}

void slc_program_forget_waits(slc_program *program)
{
    for (uint32_t i = 0; i < program->item_count; i++) {
        free(program->items[i].after);
        program->items[i].after = NULL;
        program->items[i].after_count = 0;
    }
}

sluice_status slc_plan_renew_waits_of(const slc_scheduling *in, const slc_scheduler *scheduler,
                                      const slc_places *places, slc_plan *plan)
{
    slc_program *program = program_at(places, plan);
    slc_work_add(in->work, SLC_WORK_WAIT, (double)program->item_count + program->claim_count);
    slc_program_forget_waits(program);
    return add_waits_at(places, in->job, plan, scheduler->slots_wait_for_all);
}

sluice_status slc_plan_renew_evaluation_waits(const slc_scheduling *in, const slc_scheduler *scheduler, slc_plan *plan)
{
    slc_places places;
    sluice_status status = slc_places_init(&places, in->job, &plan->evaluate);
    if (!status) status = slc_plan_renew_waits_of(in, scheduler, &places, plan);
    slc_places_fini(&places);
    return status;
}
