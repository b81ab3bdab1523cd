/* The model's own account of an answer: plain loops over all real slots, units and flows. It shares with the builder of
 * the solver's program only the families (what moves, for how long, between which positions).
 * slot_model_test.c covers this file. */
#include "ilp/slot_model.h"
#include "ilp/parts/slot_parts.h"

#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"

#include <math.h>
#include <stdlib.h>

static const double tolerance = 1e-6;

typedef struct {
    const slc_slot_model_parts *parts;
    const slc_slot_solution *answer;
    const slc_flow **of_unit; /* flows sorted by unit */
    uint32_t *first;          /* [units + 1] where each unit's flows begin in of_unit */
} account;

static sluice_status fault(const slc_flow *flow, const char *what)
{
    static const char *const kinds[] = {"reduction", "gather of values", "window", "exchange"};
    return slc_error(SLUICE_ERR_FORMAT, "slot model: %s %u of unit %u in micro-batch %u, position %u: %s",
                     kinds[flow->kind], flow->window, flow->unit, flow->micro_batch, flow->position, what);
}

static sluice_status sort_by_unit(account *a)
{
    uint32_t units = a->parts->job->unit_count;
    a->first = calloc((size_t)units + 2, sizeof *a->first);
    a->of_unit = calloc((size_t)a->answer->flow_count + 1, sizeof *a->of_unit);
    if (!a->first || !a->of_unit) return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for an account");
    for (uint32_t i = 0; i < a->answer->flow_count; i++) {
        const slc_flow *flow = &a->answer->flows[i];
        if (flow->unit >= units || (unsigned)flow->kind >= SLC_FLOW_KINDS) return fault(flow, "there is no such unit");
        if (!(flow->fraction >= 0) || flow->fraction > 1 + tolerance)
            return fault(flow, "its fraction is not in [0, 1]");
        a->first[flow->unit + 2]++;
    }
    for (uint32_t u = 2; u <= units + 1; u++) a->first[u] += a->first[u - 1];
    for (uint32_t i = 0; i < a->answer->flow_count; i++)
        a->of_unit[a->first[a->answer->flows[i].unit + 1]++] = &a->answer->flows[i];
    return SLUICE_OK;
}

static bool is_of(const slc_flow_family *family, const slc_flow *flow)
{
    return family->kind == flow->kind && family->unit == flow->unit && family->micro_batch == flow->micro_batch &&
           family->window == flow->window;
}

/* The fraction of a unit that this kind of flow has moved before half row h. */
static double moved_before(const account *a, uint32_t unit, slc_flow_kind kind, uint32_t micro_batch, int64_t h)
{
    double sum = 0;
    for (uint32_t i = a->first[unit]; i < a->first[unit + 1]; i++) {
        const slc_flow *flow = a->of_unit[i];
        if (flow->kind == kind && flow->micro_batch == micro_batch && flow->position < h) sum += flow->fraction;
    }
    return sum;
}

/* ---- Rules ---- */

static sluice_status check_family(const account *a, const slc_flow_family *family)
{
    double sum = 0;
    for (uint32_t i = a->first[family->unit]; i < a->first[family->unit + 1]; i++) {
        const slc_flow *flow = a->of_unit[i];
        if (!is_of(family, flow)) continue;
        if (flow->position < family->first || flow->position > family->last)
            return fault(flow, "not between its need's two ends");
        sum += flow->fraction;
    }
    if (fabs(sum - 1) > tolerance)
        return slc_error(SLUICE_ERR_FORMAT, "slot model: %g of unit %u moves, not all of it (kind %d, micro-batch %u)",
                         sum, family->unit, (int)family->kind, family->micro_batch);
    return SLUICE_OK;
}

static sluice_status check_order(const account *a, uint32_t unit)
{
    uint32_t last = a->parts->job->micro_batches - 1;
    for (uint32_t i = a->first[unit]; a->parts->job->units[unit].trainable && i < a->first[unit + 1]; i++) {
        const slc_flow *flow = a->of_unit[i];
        bool gathers = flow->kind == SLC_FLOW_GATHER_VALUE ||
                       (flow->kind == SLC_FLOW_WINDOW && !flow->window && !flow->micro_batch);
        if (!gathers) continue;
        double gathered = 0, reduced = moved_before(a, unit, SLC_FLOW_REDUCE, last, (int64_t)flow->position + 1);
        for (uint32_t k = a->first[unit]; k < a->first[unit + 1]; k++) {
            const slc_flow *other = a->of_unit[k];
            if (other->kind == flow->kind && other->micro_batch == flow->micro_batch && other->window == flow->window &&
                other->position <= flow->position)
                gathered += other->fraction;
        }
        if (gathered > reduced + tolerance) return fault(flow, "gathered before it is reduced");
    }
    return SLUICE_OK;
}

static sluice_status check_rules(const account *a)
{
    const slc_slot_model_parts *parts = a->parts;
    uint32_t known = 0;
    for (uint32_t u = 0; u < parts->job->unit_count; u++) {
        if ((unsigned)a->answer->strategies[u] >= SLC_STRATEGIES ||
            !slc_has(slc_allowed_of(parts->request, u), a->answer->strategies[u]))
            return slc_error(SLUICE_ERR_FORMAT, "slot model: unit %u has a strategy that is not allowed", u);
        sluice_status status = check_order(a, u);
        if (status) return status;
    }
    for (uint32_t l = 0; l < parts->job->layer_count; l++) {
        uint8_t of = slc_recompute_of(parts, l);
        if (of != 2 && a->answer->recompute[l] != (of == 1))
            return slc_error(SLUICE_ERR_FORMAT, "slot model: layer %u must %srecompute", l, of ? "" : "not ");
    }
    for (uint32_t i = 0; i < parts->family_count; i++) {
        const slc_flow_family *family = &parts->families[i];
        if (!slc_has(family->strategies, a->answer->strategies[family->unit])) continue;
        sluice_status status = check_family(a, family);
        if (status) return status;
        for (uint32_t k = a->first[family->unit]; k < a->first[family->unit + 1]; k++)
            known += is_of(family, a->of_unit[k]);
    }
    if (known != a->answer->flow_count)
        return slc_error(SLUICE_ERR_FORMAT, "slot model: flows that no strategy asks for");
    return SLUICE_OK;
}

/* ---- Time ---- */

static const slc_flow_family *family_of(const account *a, const slc_flow *flow)
{
    for (uint32_t i = 0; i < a->parts->family_count; i++) {
        const slc_flow_family *family = &a->parts->families[i];
        if (is_of(family, flow) && slc_has(family->strategies, a->answer->strategies[flow->unit])) return family;
    }
    return NULL; /* cannot happen if the answer keeps the rules */
}

static sluice_status add_time(const account *a, double *step_s)
{
    const slc_slot_model_parts *parts = a->parts;
    const slc_link *link = &parts->times->link;
    double *load = calloc(2 * (size_t)slc_busy_places(parts),
                          sizeof *load); /* seconds of the link and of the thread at each busy place */
    if (!load) return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for loads");
    for (uint32_t i = 0; i < a->answer->flow_count; i++) {
        const slc_flow *flow = &a->answer->flows[i];
        const slc_flow_family *family = family_of(a, flow);
        if (!family) continue;
        double *at = load + 2 * (size_t)slc_busy_place(parts, flow->position);
        at[0] += flow->fraction * family->seconds;
        at[1] += flow->fraction * slc_flow_family_thread_s(family);
    }
    const double *exposed = load + 2 * (size_t)parts->slots;
    sluice_status status = SLUICE_OK;
    double room_s = 0; /* seconds of communication for which slots still have room */
    *step_s = fmax(exposed[0], exposed[1]) + slc_agreement_s(parts) + parts->agreement_s;
    for (uint32_t s = 0; !status && s < parts->slots; s++) {
        double alone = slc_slot_s(parts->job, parts->times, a->answer->recompute, s % slc_job_slots(parts->job));
        double busy = fmax(load[2 * s], load[2 * s + 1]), taken = busy * link->sigma, time = alone + link->kappa * busy;
        if (taken > time + tolerance * (time + alone + taken))
            status =
                slc_error(SLUICE_ERR_FORMAT, "slot model: %g s of communication in slot %u of %g s", taken, s, time);
        *step_s += time;
        if (link->sigma > link->kappa) room_s += fmax(time - taken, 0) / (link->sigma - link->kappa);
    }
    /* The agreement takes the room that is left in slots; only the part that finds none is exposed. */
    *step_s -= (1 - link->kappa) * fmin(room_s, parts->agreement_s);
    free(load);
    return status;
}

/* ---- Memory ---- */

static double gradient_at(const account *a, uint32_t u, int64_t h)
{
    const slc_slot_model_parts *parts = a->parts;
    const slc_job *job = parts->job;
    uint32_t first, last, final = job->micro_batches - 1, cycle = slc_job_slots(job);
    double part = 0;
    slc_unit_gradient_slots(job, &job->units[u], &first, &last);
    for (uint32_t m = job->each ? 0 : final; m <= final; m++) {
        int64_t from = 2 * (int64_t)(job->each ? m * cycle + first : first);
        for (int64_t at = h; at <= h + parts->half_rows; at += parts->half_rows)
            if (at >= from) part += 1 - moved_before(a, u, SLC_FLOW_REDUCE, m, at);
    }
    return part;
}

static double reduced_at(const account *a, uint32_t u, int64_t h)
{
    const slc_slot_model_parts *parts = a->parts;
    const slc_job *job = parts->job;
    slc_unit_operations of = slc_operations_of(job, &job->units[u], a->answer->strategies[u]);
    bool last = slc_updated_last(job, &job->units[u]);
    bool gathered = of.gather_gradient != SLC_ITEM_KINDS && !(of.whole_sum && last);
    uint32_t final = job->micro_batches - 1, first = job->each ? 0 : final;
    double part = 0;
    for (int64_t at = h; at <= h + parts->half_rows; at += parts->half_rows) {
        double in = moved_before(a, u, SLC_FLOW_REDUCE, first, at);
        if (gathered)
            in -= moved_before(a, u, SLC_FLOW_GATHER_VALUE, final, at);
        else if (last)
            in = at > parts->complete ? 0 : in;
        else
            in -= moved_before(a, u, SLC_FLOW_REDUCE, final, at);
        part += in;
    }
    return part;
}

static double gathered_at(const account *a, uint32_t u, int64_t h)
{
    const slc_slot_model_parts *parts = a->parts;
    double part = 0;
    slc_window window;
    for (uint32_t i = a->first[u]; i < a->first[u + 1]; i++) {
        const slc_flow *flow = a->of_unit[i];
        if (flow->kind != SLC_FLOW_WINDOW) continue;
        slc_unit_window(parts->job, &parts->job->units[u], true, flow->window, &window);
        uint32_t origin = flow->micro_batch * slc_job_slots(parts->job);
        if (!flow->micro_batch && !flow->window) origin = parts->slots; /* counted from the previous step */
        int64_t end = 2 * (int64_t)(origin + window.last_slot) + 1;
        for (int64_t at = h; at <= h + parts->half_rows; at += parts->half_rows)
            if (flow->position < at && at <= end) part += flow->fraction;
    }
    return part;
}

/* Returns the fraction of a unit's exchange that is in flight at half row h: one that moves inside a slot is in flight
 * at the slot's end. */
static double exchanged_at(const account *a, uint32_t u, int64_t h)
{
    double part = 0;
    for (uint32_t i = a->first[u]; i < a->first[u + 1]; i++) {
        const slc_flow *flow = a->of_unit[i];
        bool inside = flow->kind == SLC_FLOW_EXCHANGE && flow->position % 2 == 0;
        if (inside && (flow->position + 1) % a->parts->half_rows == h) part += flow->fraction;
    }
    return part;
}

static double unit_at(const account *a, uint32_t u, int64_t h)
{
    const slc_job *job = a->parts->job;
    slc_buffer_rule rows[SLC_BUFFER_RULES_MAX];
    double bytes = 0;
    for (uint32_t i = slc_buffer_rules(job, &job->units[u], a->answer->strategies[u], rows); i-- > 0;) {
        double part = 1, whole = (double)slc_buffer_bytes(job, &job->units[u], &rows[i]);
        if (rows[i].life == SLC_LIFE_GRADIENT) part = gradient_at(a, u, h);
        if (rows[i].life == SLC_LIFE_REDUCED) part = reduced_at(a, u, h);
        if (rows[i].life == SLC_LIFE_WINDOW) part = gathered_at(a, u, h);
        if (rows[i].life == SLC_LIFE_PACKETS || rows[i].life == SLC_LIFE_RESULTS) part = exchanged_at(a, u, h);
        bytes += part * whole;
    }
    return bytes;
}

static double others_at(const account *a, uint32_t slot)
{
    const slc_job *job = a->parts->job;
    double bytes = 0;
    for (uint32_t i = 0; i < job->activation_count; i++) {
        const slc_activation_life *life = &job->activations[i];
        uint32_t layer = slc_slot_layer(job, life->first_slot);
        bool again = life->recomputable && slc_slot_is_forward(job, life->first_slot) && a->answer->recompute[layer];
        if (slot < life->first_slot || slot > life->last_slot) continue;
        if (again && slot > life->first_slot && slot < slc_backward_slot(job, layer)) continue;
        bytes += (double)life->bytes;
    }
    for (uint32_t i = 0; i < job->workspace_count; i++)
        if (job->workspaces[i].slot == slot) bytes += (double)job->workspaces[i].bytes;
    return bytes;
}

/* A slot of an evaluation pass, in which nothing is recomputed and no value is gathered before its slot. */
static double evaluated_at(const account *a, uint32_t slot)
{
    const slc_job *job = a->parts->job;
    slc_window window;
    double bytes = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        bytes += (double)slc_resident_bytes(job, unit, a->answer->strategies[u]);
        for (uint32_t w = 0; slc_unit_window(job, unit, false, w, &window); w++)
            if (slc_gathers_windows(a->answer->strategies[u]) && slot >= window.first_slot && slot <= window.last_slot)
                bytes += (double)slc_block_byte(job, unit, SLC_BUFFER_GATHERED, false, slc_unit_blocks(unit));
    }
    for (uint32_t i = 0; i < job->activation_count; i++) {
        const slc_activation_life *life = &job->activations[i];
        if (life->last_forward_slot >= job->layer_count) continue;
        if (slot >= life->first_slot && slot <= life->last_forward_slot) bytes += (double)life->bytes;
    }
    for (uint32_t i = 0; i < job->workspace_count; i++)
        if (job->workspaces[i].slot == slot) bytes += (double)job->workspaces[i].bytes;
    return bytes;
}

static double largest_row(const account *a)
{
    const slc_slot_model_parts *parts = a->parts;
    const slc_job *job = parts->job;
    double always = (double)job->scratch_bytes + 8.0 * (double)slc_agreement_words(job), most = 0;
    double reading = (double)slc_reading_bytes(job);
    for (uint32_t u = 0; u < job->unit_count; u++)
        reading += (double)slc_resident_bytes(job, &job->units[u], a->answer->strategies[u]);
    most = always + reading;
    for (uint32_t h = 0; h < parts->half_rows; h++) {
        double bytes = always + others_at(a, h / 2 % slc_job_slots(job));
        for (uint32_t u = 0; u < job->unit_count; u++) bytes += unit_at(a, u, h);
        if (bytes > most) most = bytes;
    }
    for (uint32_t s = 0; s < job->layer_count; s++) most = fmax(most, always + evaluated_at(a, s));
    return most;
}

void slc_slot_solution_fini(slc_slot_solution *solution)
{
    free(solution->strategies);
    free(solution->recompute);
    free(solution->flows);
    *solution = (slc_slot_solution){0};
}

sluice_status slc_slot_model_evaluate(const slc_slot_request *request, const slc_slot_solution *answer, double *step_s,
                                      uint64_t *most_bytes)
{
    slc_slot_model_parts parts;
    sluice_status status = slc_slot_parts_init(&parts, request, SLC_EVERYTHING);
    if (status) return status;
    account a = {.parts = &parts, .answer = answer};
    status = sort_by_unit(&a);
    if (!status) status = check_rules(&a);
    if (!status) status = add_time(&a, step_s);
    if (!status && most_bytes) *most_bytes = (uint64_t)llround(largest_row(&a));
    free(a.of_unit);
    free(a.first);
    slc_slot_parts_fini(&parts);
    return status;
}
