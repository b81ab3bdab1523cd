/* The dual function of the model's rows of room and memory, and its ascent by subgradients with Polyak's steps. The
 * other rows (orders, the thread's lane, an evaluation's memory) are left out, which only lowers the bound.
 * sched/joint/bound_test.c covers this file. */
#include "ilp/solver/priced_bound.h"

#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The costs of looking, in cells of a program that could be set up instead: at a slot or a row of slots, at a position
 * of a family whose memory does not change evenly (later_bytes is NAN), and at a family besides those. */
static const double SLOT_CELLS = 0.015, POSITION_CELLS = 0.4, FAMILY_CELLS = 2;
enum { ROW = 32 };                   /* slots that are passed over together if none of them can be the cheapest */
enum { ROUNDS = 200, PATIENCE = 6 }; /* evaluations; those without gain before steps are halved */

typedef struct {
    const slc_slot_model_parts *parts;
    slc_prices at, best;
    double *load;      /* [slots] seconds taken from a slot's room beyond what there is */
    double *bytes;     /* [half_rows + 1] bytes beyond the limit; while units choose: changes of them */
    double *sums;      /* [half_rows + 1] sums of the prices of memory before each half row */
    double *slot_s;    /* [2 * slots] what a second of communication costs in each slot; infinite: no position */
    double *slot_sums; /* [2 * slots] sums of the prices of memory up to each slot's start */
    double *row_s;     /* [2 * slots / ROW + 1] the least slot_s of each row of slots */
    double *family_s;  /* [families] what a family costs at its cheapest position */
    uint32_t *family_position; /* [families] that position */
    double *later_bytes; /* [families] by how many bytes in a half row it holds more if it moves a half row later; NAN:
                            that depends on the position */
    uint32_t *first_dropped, *dropped; /* [L + 1], [activations] where each layer's begin; activations by layer */
    uint32_t *positions;
    slc_lifetime *spans;
    double memory_scale; /* seconds for a byte, by which the two sorts of prices are comparable */
    double cells;        /* what was looked at in a round */
} pricing;

sluice_status slc_prices_init(slc_prices *prices, uint32_t slots)
{
    prices->room = calloc((size_t)slots + 1, sizeof *prices->room);
    prices->memory = calloc(2 * (size_t)slots + 1, sizeof *prices->memory);
    return prices->room && prices->memory ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "bound: no memory for prices");
}

void slc_prices_fini(slc_prices *prices)
{
    free(prices->memory);
    free(prices->room);
    *prices = (slc_prices){0};
}

/* ---- What things cost ---- */

static double span_s(const pricing *p, const slc_lifetime *span)
{
    int64_t all = p->parts->half_rows, from = span->from % all, over = (span->to + 1) % all;
    if (span->to < span->from) return 0;
    if (span->to - span->from + 1 >= all) return span->bytes * p->sums[all];
    return span->bytes * (p->sums[over] - p->sums[from] + (over <= from ? p->sums[all] : 0));
}

static void take_span(pricing *p, const slc_lifetime *span, double sign)
{
    int64_t all = p->parts->half_rows, from = span->from % all, over = (span->to + 1) % all;
    if (span->to < span->from) return;
    bool always = span->to - span->from + 1 >= all;
    if (always || over <= from) p->bytes[0] += sign * span->bytes;
    if (always) return;
    p->bytes[from] += sign * span->bytes;
    p->bytes[over] -= sign * span->bytes;
}

static double place_s(const pricing *p, uint32_t position, double seconds)
{
    const slc_link *link = &p->parts->times->link;
    if (position & 1) return seconds;
    return seconds * (link->kappa + p->at.room[position / 2 % p->parts->slots] * (link->sigma - link->kappa));
}

static void take_place(pricing *p, uint32_t position, double seconds)
{
    const slc_link *link = &p->parts->times->link;
    if (!(position & 1)) p->load[position / 2 % p->parts->slots] += seconds * (link->sigma - link->kappa);
}

static double position_s(const pricing *p, uint32_t family, uint32_t position)
{
    const slc_flow_family *s = &p->parts->families[family];
    slc_lifetime spans[SLC_SPANS_MAX];
    double seconds = place_s(p, position, s->seconds);
    for (uint32_t i = slc_flow_family_spans(p->parts, s, position, spans); i-- > 0;) seconds += span_s(p, &spans[i]);
    return seconds;
}

static void take_cheaper(pricing *p, uint32_t family, uint32_t position)
{
    const double seconds = position_s(p, family, position);
    if (seconds >= p->family_s[family]) return;
    p->family_s[family] = seconds;
    p->family_position[family] = position;
}

/* Looks for a cheaper slot in [from, end), which lies in one row. No slot of a row costs less than the row's least
 * slot_s and the least of the sums, which rise from slot to slot. */
static void search_row(pricing *p, double seconds, double bytes, uint32_t from, uint32_t end, double *least_s,
                       uint32_t *found)
{
    const double *slot_s = p->slot_s, *sums = p->slot_sums;
    p->cells += SLOT_CELLS;
    if (!(seconds * p->row_s[from / ROW] + bytes * sums[bytes < 0 ? end - 1 : from] < *least_s)) return;
    for (uint32_t k = from; k < end; k++) {
        const double here_s = seconds * slot_s[k] + bytes * sums[k];
        if (!(here_s < *least_s)) continue;
        *least_s = here_s;
        *found = k;
    }
    p->cells += SLOT_CELLS * (end - from);
}

/* Returns the cheapest slot in the range of a family whose memory grows by the same bytes with each half row that it
 * moves later; SLC_NONE: there is none. */
static uint32_t cheapest_slot(pricing *p, uint32_t family)
{
    const slc_flow_family *s = &p->parts->families[family];
    const uint32_t end = s->last / 2 + 1;
    double least_s = INFINITY;
    uint32_t found = SLC_NONE;
    for (uint32_t from = (s->first + 1) / 2, next; from < end; from = next) {
        next = (from / ROW + 1) * ROW;
        if (next > end) next = end;
        search_row(p, s->seconds, p->later_bytes[family], from, next, &least_s, &found);
    }
    return found;
}

static void find_position(pricing *p, uint32_t family)
{
    const slc_flow_family *s = &p->parts->families[family];
    uint32_t gaps[2], count;
    p->family_s[family] = INFINITY;
    p->cells += FAMILY_CELLS;
    if (isnan(p->later_bytes[family])) {
        count = slc_flow_family_positions(p->parts, s, p->positions);
        for (uint32_t k = 0; k < count; k++) take_cheaper(p, family, p->positions[k]);
        p->cells += POSITION_CELLS * count;
        return;
    }
    const uint32_t slot = cheapest_slot(p, family);
    if (slot != SLC_NONE) take_cheaper(p, family, 2 * slot);
    count = slc_flow_family_end_gaps(p->parts, s, gaps);
    for (uint32_t k = 0; k < count; k++) take_cheaper(p, family, gaps[k]);
}

static void take_family(pricing *p, uint32_t family)
{
    const slc_flow_family *s = &p->parts->families[family];
    slc_lifetime spans[SLC_SPANS_MAX];
    take_place(p, p->family_position[family], s->seconds);
    for (uint32_t i = slc_flow_family_spans(p->parts, s, p->family_position[family], spans); i-- > 0;)
        take_span(p, &spans[i], 1);
}

/* ---- What is cheapest ---- */

static double strategy_s(pricing *p, uint32_t unit, slc_strategy strategy, uint32_t first, uint32_t end)
{
    double seconds = 0;
    for (uint32_t i = slc_strategy_spans(p->parts, unit, strategy, p->spans); i-- > 0;)
        seconds += span_s(p, &p->spans[i]);
    for (uint32_t i = first; i < end; i++)
        if (slc_has(p->parts->families[i].strategies, strategy)) seconds += p->family_s[i];
    return seconds;
}

/* Takes the unit's cheapest strategy; its families are [first, end). Returns what it costs. */
static double choose_strategy(pricing *p, uint32_t unit, uint32_t first, uint32_t end)
{
    double least_s = INFINITY;
    slc_strategy chosen = SLC_DP;
    for (uint32_t i = first; i < end; i++) find_position(p, i);
    for (int k = 0; k < SLC_STRATEGIES; k++) {
        if (!slc_has(p->parts->options[unit], (slc_strategy)k)) continue;
        double seconds = strategy_s(p, unit, (slc_strategy)k, first, end);
        if (seconds >= least_s) continue;
        least_s = seconds;
        chosen = (slc_strategy)k;
    }
    for (uint32_t i = slc_strategy_spans(p->parts, unit, chosen, p->spans); i-- > 0;) take_span(p, &p->spans[i], 1);
    for (uint32_t i = first; i < end; i++)
        if (slc_has(p->parts->families[i].strategies, chosen)) take_family(p, i);
    return least_s;
}

/* Chooses whether a layer recomputes, and returns what that costs. If it must recompute, the memory that it frees is
 * counted with the fixed memory. */
static double choose_recomputation(pricing *p, uint32_t layer)
{
    const slc_slot_model_parts *parts = p->parts;
    const uint8_t of = slc_recompute_of(parts, layer);
    const double again_s = parts->times->recompute_s[layer];
    double seconds = 0;
    slc_lifetime span;
    if (!of) return 0;
    for (int taking = 0; taking < 2; taking++) {
        if (taking && of == 2 && seconds >= 0) return 0;
        for (uint32_t m = 0; m < parts->micro_batches; m++) {
            uint32_t slot = m * slc_job_slots(parts->job) + slc_backward_slot(parts->job, layer);
            if (taking)
                p->load[slot] -= again_s;
            else
                seconds += again_s * (1 - p->at.room[slot]);
            for (uint32_t i = p->first_dropped[layer]; of == 2 && i < p->first_dropped[layer + 1]; i++) {
                if (!slc_recompute_span(parts, p->dropped[i], m, &span)) continue;
                if (taking)
                    take_span(p, &span, -1);
                else
                    seconds -= span_s(p, &span);
            }
        }
    }
    return seconds;
}

static double choose_agreement(pricing *p)
{
    const double whole_s = p->parts->agreement_s;
    double least_s = whole_s;
    uint32_t position = 1; /* a gap */
    for (uint32_t s = 0; whole_s > 0 && s < p->parts->slots; s++) {
        double seconds = place_s(p, 2 * s, whole_s);
        if (seconds >= least_s) continue;
        least_s = seconds;
        position = 2 * s;
    }
    take_place(p, position, whole_s);
    return least_s;
}

/* ---- The bound of some prices ---- */

/* Sums the prices of memory, and lists those of slots for this step and the next. */
static void list_prices(pricing *p)
{
    const slc_slot_model_parts *parts = p->parts;
    const uint32_t slots = parts->slots, rows = parts->half_rows;
    for (uint32_t h = 0; h < rows; h++) p->sums[h + 1] = p->sums[h] + p->at.memory[h];
    for (uint32_t k = 0; k < 2 * slots; k++) {
        p->slot_s[k] = slc_slot_is_offered(parts, k) ? place_s(p, 2 * k, 1) : INFINITY;
        p->slot_sums[k] = p->sums[2 * (k % slots) + 1] + (k < slots ? 0 : p->sums[rows]);
        if (!(k % ROW) || p->slot_s[k] < p->row_s[k / ROW]) p->row_s[k / ROW] = p->slot_s[k];
    }
}

/* Returns the bound of p->at, and leaves in `load` and `bytes` by how much each row is exceeded, its slope. */
static double bound_of_prices(pricing *p)
{
    const slc_slot_model_parts *parts = p->parts;
    double bound_s = slc_fixed_s(parts), sum = 0;
    list_prices(p);
    memset(p->bytes, 0, ((size_t)parts->half_rows + 1) * sizeof *p->bytes);
    for (uint32_t s = 0; s < parts->slots; s++) {
        p->load[s] = -slc_slot_seconds(parts, s);
        bound_s += p->at.room[s] * p->load[s];
    }
    for (uint32_t u = 0, i = 0, first = 0; u < parts->job->unit_count; u++, first = i) {
        while (i < parts->family_count && parts->families[i].unit == u) i++;
        bound_s += choose_strategy(p, u, first, i);
    }
    for (uint32_t l = 0; l < parts->job->layer_count; l++) bound_s += choose_recomputation(p, l);
    if (parts->agreement_s > 0) bound_s += choose_agreement(p);
    for (uint32_t h = 0; h < parts->half_rows; h++) {
        double beyond = (double)parts->fixed_bytes[h] - (double)parts->request->limit;
        sum += p->bytes[h];
        p->bytes[h] = sum + beyond;
        bound_s += p->at.memory[h] * beyond;
    }
    return bound_s;
}

/* ---- Better prices ---- */

/* Returns the slope of the bound in a price. A price of 0 cannot fall, so its slope is not below 0. */
static double slope(double price, double exceeded)
{
    return price > 0 || exceeded > 0 ? exceeded : 0;
}

static double moved(double price, double by)
{
    return fmax(price + by, 0);
}

/* Moves prices so that the bound would rise by `rise_s` if it were linear. False: there is nothing to gain. */
static bool move_prices(pricing *p, double rise_s)
{
    const slc_slot_model_parts *parts = p->parts;
    const double scale = p->memory_scale;
    double norm = 0;
    for (uint32_t s = 0; s < parts->slots; s++) norm += pow(slope(p->at.room[s], p->load[s]), 2);
    for (uint32_t h = 0; h < parts->half_rows; h++) norm += pow(scale * slope(p->at.memory[h], p->bytes[h]), 2);
    if (!(norm > 0) || !(rise_s > 0)) return false;
    const double step = rise_s / norm;
    for (uint32_t s = 0; s < parts->slots; s++)
        p->at.room[s] = moved(p->at.room[s], step * slope(p->at.room[s], p->load[s]));
    for (uint32_t h = 0; h < parts->half_rows; h++)
        p->at.memory[h] = moved(p->at.memory[h], step * scale * scale * slope(p->at.memory[h], p->bytes[h]));
    return true;
}

static void copy_prices(slc_prices *to, const slc_prices *from, uint32_t slots)
{
    memcpy(to->room, from->room, slots * sizeof *to->room);
    memcpy(to->memory, from->memory, 2 * (size_t)slots * sizeof *to->memory);
}

static double weigh_prices(pricing *p)
{
    p->cells = 0;
    const double bound_s = bound_of_prices(p);
    slc_work_add(p->parts->request->work, SLC_WORK_MODEL_CELL, p->cells);
    return bound_s;
}

/* Prices room in every slot alike. */
static void price_room(pricing *p, double room)
{
    for (uint32_t s = 0; s < p->parts->slots; s++) p->at.room[s] = room;
}

static bool is_over(const pricing *p, double until_s)
{
    const slc_slot_request *request = p->parts->request;
    return slc_work_is_over(request->work, until_s) || slc_cancelled(request->cancel);
}

static void take_better(pricing *p, double *best_s)
{
    const double bound_s = weigh_prices(p);
    if (bound_s <= *best_s) return;
    *best_s = bound_s;
    copy_prices(&p->best, &p->at, p->parts->slots);
}

/* Finds the best prices to begin with, leaves them in p->at with their bound in *bound_s, and returns the best bound so
 * far. The prices in p->at are tried first; they may be far from the best ones of the real job, or all 0. Then room
 * gets the price of a step in which everything can be hidden, and that of a step that is busy communicating, where room
 * is worth what hiding a second in it saves. Both are tried with the program's prices of memory, and then with memory
 * free of charge. */
static double begin(pricing *p, double until_s, double *bound_s)
{
    const slc_link *link = &p->parts->times->link;
    const double saved = link->kappa < 1 ? (1 - link->kappa) / (link->sigma - link->kappa) : 0, rooms[] = {0, saved};
    double best_s = -INFINITY;
    take_better(p, &best_s);
    for (int i = 0; i < 4 && !is_over(p, until_s); i++) {
        if (i == 2) memset(p->at.memory, 0, p->parts->half_rows * sizeof *p->at.memory);
        price_room(p, rooms[i % 2]);
        take_better(p, &best_s);
    }
    copy_prices(&p->at, &p->best, p->parts->slots);
    *bound_s = weigh_prices(p);
    return fmax(best_s, slc_fixed_s(p->parts));
}

static double ascend(pricing *p, double step_s, double until_s)
{
    uint32_t slots = p->parts->slots, without = 0;
    double share = 1, bound_s, best_s = slc_fixed_s(p->parts);
    if (is_over(p, until_s)) return best_s;
    best_s = begin(p, until_s, &bound_s);
    for (uint32_t round = 0; round < ROUNDS && !is_over(p, until_s); round++) {
        double target_s = isfinite(step_s) ? step_s : 1.1 * best_s;
        if (!move_prices(p, share * (target_s - bound_s))) break;
        bound_s = weigh_prices(p);
        if (bound_s > best_s) {
            best_s = bound_s;
            without = 0;
            copy_prices(&p->best, &p->at, slots);
        } else if (++without == PATIENCE) {
            share /= 2;
            without = 0;
            copy_prices(&p->at, &p->best, slots);
            bound_s = weigh_prices(p);
        }
    }
    return best_s;
}

/* ---- All together ---- */

/* Spreads the prices of a folded program over all micro-batches; that of its middle one is paid once for all it
 * represents. */
static void unfold(pricing *p, const slc_prices *folded, uint32_t folded_micro_batches)
{
    uint32_t cycle = slc_job_slots(p->parts->job), all = p->parts->micro_batches;
    for (uint32_t m = 0; m < all; m++) {
        bool template = folded_micro_batches < all, middle = template && m && m + 1 < all;
        uint32_t from = !template ? m : m ? middle ? 1 : 2 : 0;
        double share = middle ? 1.0 / (all - 2) : 1;
        for (uint32_t s = 0; s < cycle; s++) p->at.room[m * cycle + s] = share * folded->room[from * cycle + s];
        for (uint32_t h = 0; h < 2 * cycle; h++)
            p->at.memory[2 * m * cycle + h] = share * folded->memory[2 * from * cycle + h];
    }
}

/* Sums the bytes that a family at this position holds over half rows. False: they do not change evenly from position to
 * position there. */
static bool sum_held(const slc_slot_model_parts *parts, const slc_flow_family *s, uint32_t position, double *sum)
{
    slc_lifetime spans[SLC_SPANS_MAX];
    *sum = 0;
    for (uint32_t i = slc_flow_family_spans(parts, s, position, spans); i-- > 0;) {
        const int64_t length = spans[i].to - spans[i].from + 1;
        if (length < 0 || length >= parts->half_rows) return false;
        *sum += spans[i].bytes * (double)length;
    }
    return true;
}

static double later_bytes(const slc_slot_model_parts *parts, const slc_flow_family *s)
{
    double first, second, last;
    if (s->first >= s->last) return 0;
    if (!sum_held(parts, s, s->first, &first) || !sum_held(parts, s, s->first + 1, &second) ||
        !sum_held(parts, s, s->last, &last))
        return NAN;
    const double bytes = second - first, expected = first + bytes * (s->last - s->first);
    return fabs(last - expected) <= 1e-9 * (fabs(first) + fabs(last)) ? bytes : NAN;
}

static void list_dropped(pricing *p)
{
    const slc_job *job = p->parts->job;
    uint32_t *first = p->first_dropped;
    for (uint32_t a = 0; a < job->activation_count; a++) first[slc_activation_layer(job, a) + 1]++;
    for (uint32_t l = 0; l < job->layer_count; l++) first[l + 1] += first[l];
    for (uint32_t a = 0; a < job->activation_count; a++) p->dropped[first[slc_activation_layer(job, a)]++] = a;
    for (uint32_t l = job->layer_count; l > 0; l--) first[l] = first[l - 1];
    first[0] = 0;
}

static sluice_status pricing_init(pricing *p)
{
    const slc_slot_model_parts *parts = p->parts;
    sluice_status status = slc_prices_init(&p->at, parts->slots);
    if (!status) status = slc_prices_init(&p->best, parts->slots);
    if (status) return status;
    p->load = calloc((size_t)parts->slots + 1, sizeof *p->load);
    p->bytes = calloc((size_t)parts->half_rows + 1, sizeof *p->bytes);
    p->sums = calloc((size_t)parts->half_rows + 1, sizeof *p->sums);
    p->slot_s = calloc(2 * (size_t)parts->slots, sizeof *p->slot_s);
    p->slot_sums = calloc(2 * (size_t)parts->slots, sizeof *p->slot_sums);
    p->row_s = calloc(2 * (size_t)parts->slots / ROW + 1, sizeof *p->row_s);
    p->later_bytes = calloc((size_t)parts->family_count + 1, sizeof *p->later_bytes);
    p->first_dropped = calloc((size_t)parts->job->layer_count + 2, sizeof *p->first_dropped);
    p->dropped = calloc((size_t)parts->job->activation_count + 1, sizeof *p->dropped);
    p->family_s = calloc((size_t)parts->family_count + 1, sizeof *p->family_s);
    p->family_position = calloc((size_t)parts->family_count + 1, sizeof *p->family_position);
    p->positions = calloc(4 * (size_t)parts->slots + 8, sizeof *p->positions);
    p->spans = calloc(slc_strategy_spans_max(parts) + 1, sizeof *p->spans);
    p->memory_scale = slc_fixed_s(parts) / parts->slots / (double)parts->request->limit;
    if (!p->load || !p->bytes || !p->sums || !p->slot_s || !p->slot_sums || !p->row_s || !p->later_bytes ||
        !p->first_dropped || !p->dropped || !p->family_s || !p->family_position || !p->positions || !p->spans)
        return slc_error(SLUICE_ERR_MEMORY, "bound: no memory for %u slots", parts->slots);
    for (uint32_t i = 0; i < parts->family_count; i++) p->later_bytes[i] = later_bytes(parts, &parts->families[i]);
    list_dropped(p);
    return SLUICE_OK;
}

static void pricing_fini(pricing *p)
{
    free(p->spans);
    free(p->positions);
    free(p->dropped);
    free(p->first_dropped);
    free(p->later_bytes);
    free(p->row_s);
    free(p->slot_sums);
    free(p->slot_s);
    free(p->family_position);
    free(p->family_s);
    free(p->sums);
    free(p->bytes);
    free(p->load);
    slc_prices_fini(&p->best);
    slc_prices_fini(&p->at);
}

sluice_status slc_priced_bound(const slc_slot_request *request, const slc_prices *prices, uint32_t folded_micro_batches,
                               double step_s, double until_s, double *bound_s)
{
    slc_slot_request all = *request;
    slc_slot_model_parts parts;
    all.every_position = true;
    sluice_status status = slc_slot_parts_init(&parts, &all, SLC_BOUNDING);
    if (status) return status;
    pricing p = {.parts = &parts};
    status = pricing_init(&p);
    if (!status) {
        unfold(&p, prices, folded_micro_batches);
        *bound_s = fmax(ascend(&p, step_s, until_s) - parts.forgone_s, slc_fixed_s(&parts));
    }
    pricing_fini(&p);
    slc_slot_parts_fini(&parts);
    return status;
}
