/* The parts of the model: checks of the request, strategies worth considering, families, and fixed memory.
 * ilp/slot_model_test.c covers this file. */
#include "ilp/parts/slot_parts.h"

#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"

#include <math.h>
#include <stdlib.h>

static const double PLACED_AGREEMENT = 1e-3; /* share of the compute from which on the program places the agreement */

static bool is_time(double seconds)
{
    return isfinite(seconds) && seconds >= 0 && seconds < 1e9;
}

static sluice_status check_link(const slc_link *link)
{
    const slc_link_line *lines[] = {&link->reduce_scatter, &link->all_gather};
    for (int i = 0; i < 2; i++)
        if (!is_time(lines[i]->latency_s) || !(lines[i]->bytes_per_s > 0) || !isfinite(lines[i]->bytes_per_s))
            return slc_error(SLUICE_ERR_FORMAT, "slot model: the link needs a latency >= 0 and a bandwidth > 0");
    if (!is_time(link->kappa) || !is_time(link->sigma) || link->sigma < 1 || link->kappa > link->sigma ||
        !is_time(link->operation_s))
        return slc_error(SLUICE_ERR_FORMAT, "slot model: kappa must be in [0, sigma] and sigma >= 1, not %g and %g",
                         link->kappa, link->sigma);
    return SLUICE_OK;
}

static sluice_status check_layers(const slc_slot_request *request)
{
    const slc_job *job = request->job;
    const slc_times *times = request->times;
    for (uint32_t s = 0; s < slc_job_slots(job); s++)
        if (!is_time(times->slot_s[s]))
            return slc_error(SLUICE_ERR_FORMAT, "slot model: slot %u takes %g seconds", s, times->slot_s[s]);
    for (uint32_t l = 0; request->recompute && l < job->layer_count; l++) {
        if (request->recompute[l] > 2)
            return slc_error(SLUICE_ERR_FORMAT, "slot model: recompute of layer %u is %u, not 0, 1 or 2", l,
                             request->recompute[l]);
        if (request->recompute[l] && !is_time(times->recompute_s[l]))
            return slc_error(SLUICE_ERR_FORMAT, "slot model: layer %u recomputes in %g seconds", l,
                             times->recompute_s[l]);
    }
    return SLUICE_OK;
}

static sluice_status check_request(const slc_slot_request *request)
{
    const slc_job *job = request->job;
    if (!job->layer_count || !job->world || !job->micro_batches)
        return slc_error(SLUICE_ERR_FORMAT, "slot model: a job of no layers, ranks or micro-batches");
    if ((uint64_t)job->layer_count * job->micro_batches > 1u << 20)
        return slc_error(SLUICE_ERR_FORMAT, "slot model: %u layers times %u micro-batches are too many",
                         job->layer_count, job->micro_batches);
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (!job->units[u].use_count || !slc_allowed_of(request, u))
            return slc_error(SLUICE_ERR_FORMAT, "slot model: unit %u is used by no layer or has no strategy", u);
    const slc_times *t = request->times;
    const double element_s[] = {t->update_s_per_element, t->compress_s_per_element, t->apply_s_per_element,
                                t->average_s_per_element, t->update_compute_s_per_element};
    for (size_t i = 0; i < sizeof element_s / sizeof *element_s; i++)
        if (!is_time(element_s[i]))
            return slc_error(SLUICE_ERR_FORMAT, "slot model: an update, or a pass of an exchange, of %g s an element",
                             element_s[i]);
    sluice_status status = check_link(&request->times->link);
    return status ? status : check_layers(request);
}

/* If several strategies move the same bytes in the same ways, only the one that keeps least is an option, as the table
 * of strategies says. Without a barrier (for which dp's gathers need not wait) dp moves as sdp does and keeps more. It
 * only saves the start of one operation or, with `each`, charges its update with the gather instead of the reduction.
 * If that saves little, dp is left out too, and the saving is counted in forgone_s. If blocks move whole, even a little
 * may decide what fits into a slot; then dp is left out only if it saves nothing. */
static void drop_dominated(slc_slot_model_parts *parts)
{
    const slc_job *job = parts->job;
    const slc_link *link = &parts->times->link;
    double step_s = 0, dp_s = 0;
    for (uint32_t s = 0; s < slc_job_slots(job); s++) step_s += parts->times->slot_s[s] * job->micro_batches;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        uint8_t allowed = parts->options[u];
        bool frozen = !job->units[u].trainable;
        for (int k = 0; k < SLC_STRATEGIES; k++) {
            const slc_strategy_rules *rules = &slc_strategies[k];
            if (allowed & (frozen ? rules->dominated_if_frozen : rules->dominated_by))
                parts->options[u] &= (uint8_t) ~(1 << k);
        }
        if (!frozen && slc_has(allowed, SLC_DP) && slc_has(allowed, SLC_SDP)) {
            if (!job->each) dp_s += link->operation_s;
            /* twice: a reduction that takes longer may also push its gather out of the slot */
            if (job->each && link->thread_moves)
                dp_s += 2 * slc_update_s(job, parts->times, SLC_SDP, job->units[u].elements);
        }
    }
    if (job->barrier || dp_s > (parts->request->whole_blocks ? 0 : 1e-4 * step_s)) return;
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (slc_has(parts->options[u], SLC_SDP)) parts->options[u] &= ~(1u << SLC_DP);
    parts->forgone_s = dp_s;
}

static void add_fixed(slc_slot_model_parts *parts, uint32_t first_slot, uint32_t last_slot, uint64_t bytes)
{
    for (uint32_t m = 0; m < parts->micro_batches; m++)
        for (uint32_t s = first_slot; s <= last_slot; s++) {
            uint32_t slot = m * slc_job_slots(parts->job) + s;
            parts->fixed_bytes[2 * slot] += bytes;
            parts->fixed_bytes[2 * slot + 1] += bytes;
        }
}

static void sum_fixed_bytes(slc_slot_model_parts *parts)
{
    const slc_job *job = parts->job;
    uint64_t always = job->scratch_bytes + 8 * slc_agreement_words(job);
    add_fixed(parts, 0, slc_job_slots(job) - 1, always);
    parts->reading_bytes = always + slc_reading_bytes(job);
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        slc_lifetime dropped;
        if (life->last_slot < life->first_slot) continue;
        add_fixed(parts, life->first_slot, life->last_slot, life->bytes);
        if (slc_recompute_of(parts, slc_activation_layer(job, a)) == 1 && slc_recompute_span(parts, a, 0, &dropped))
            add_fixed(parts, (uint32_t)dropped.from / 2, (uint32_t)dropped.to / 2, -life->bytes);
    }
    for (uint32_t w = 0; w < job->workspace_count; w++)
        add_fixed(parts, job->workspaces[w].slot, job->workspaces[w].slot, job->workspaces[w].bytes);
}

static bool agreement_is_exposed(const slc_slot_model_parts *parts)
{
    const slc_job *job = parts->job;
    for (uint32_t u = 0; job->barrier && u < job->unit_count; u++) {
        bool onebit = slc_has(slc_allowed_of(parts->request, u), SLC_ONEBIT);
        if (job->units[u].trainable && !job->units[u].uses[0].layer && !(onebit && job->norms_barrier)) return true;
    }
    return false;
}

static double whole_agreement_s(const slc_slot_model_parts *parts)
{
    return parts->job->world > 1 ? slc_operation_s(parts->job, parts->times, SLC_ITEM_AGREE, NULL, 0) : 0;
}

void slc_agreement_init(slc_slot_model_parts *parts)
{
    const slc_job *job = parts->job;
    double whole_s = whole_agreement_s(parts), compute_s = 0;
    for (uint32_t s = 0; s < slc_job_slots(job); s++) compute_s += parts->times->slot_s[s] * job->micro_batches;
    bool one_lane = !job->compressed && !slc_job_splits(job), hides = parts->times->link.kappa < 1;
    if (one_lane && hides && whole_s > PLACED_AGREEMENT * compute_s && !agreement_is_exposed(parts))
        parts->agreement_s = whole_s;
}

double slc_agreement_s(const slc_slot_model_parts *parts)
{
    if (parts->agreement_s > 0) return 0;
    return whole_agreement_s(parts) * (agreement_is_exposed(parts) ? 1 : fmin(parts->times->link.kappa, 1));
}

double slc_fixed_s(const slc_slot_model_parts *parts)
{
    double seconds = 0;
    for (uint32_t s = 0; s < parts->slots; s++) seconds += slc_slot_weight(parts, s) * slc_slot_seconds(parts, s);
    return seconds + slc_agreement_s(parts);
}

static sluice_status list_families(slc_slot_model_parts *parts)
{
    size_t count = 0;
    for (uint32_t u = 0; u < parts->job->unit_count; u++) count += slc_unit_families(parts, u, NULL);
    parts->families = calloc(count + 1, sizeof *parts->families);
    if (!parts->families) return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for %zu families", count);
    for (uint32_t u = 0; u < parts->job->unit_count; u++)
        parts->family_count += slc_unit_families(parts, u, parts->families + parts->family_count);
    parts->first_place = parts->slots;
    for (uint32_t i = 0; i < parts->family_count; i++) {
        const slc_flow_family *family = &parts->families[i];
        if (!(slc_flow_family_thread_s(family) > 0)) continue;
        parts->two_lanes = true;
        if (family->first < family->last) parts->first_place = 0;
    }
    return SLUICE_OK;
}

/* Returns the first half row at which all gradients are complete. The agreement need not wait for the backward of
 * layers below the first trained one, which comes later. */
static uint32_t all_gradients_complete(const slc_slot_model_parts *parts)
{
    uint32_t first, last, latest = 0, cycle = slc_job_slots(parts->job);
    for (uint32_t u = 0; u < parts->job->unit_count; u++) {
        if (!parts->job->units[u].trainable) continue;
        slc_unit_gradient_slots(parts->job, &parts->job->units[u], &first, &last);
        if (last > latest) latest = last;
    }
    return 2 * ((parts->micro_batches - 1) * cycle + latest) + 1;
}

sluice_status slc_slot_parts_init(slc_slot_model_parts *parts, const slc_slot_request *request, slc_slot_detail detail)
{
    *parts = (slc_slot_model_parts){.request = request, .job = request->job, .times = request->times};
    sluice_status status = check_request(request);
    if (status) return status;
    uint32_t real = request->job->micro_batches;
    parts->bounding = detail == SLC_BOUNDING;
    parts->micro_batches = detail != SLC_FOLDED || real <= 3 ? real : 3;
    parts->middle = slc_is_template(parts) ? real - 2 : 1;
    parts->slots = parts->micro_batches * slc_job_slots(request->job);
    parts->half_rows = 2 * parts->slots;
    parts->complete = all_gradients_complete(parts);
    parts->options = calloc((size_t)request->job->unit_count + 1, sizeof *parts->options);
    parts->fixed_bytes = calloc(parts->half_rows, sizeof *parts->fixed_bytes);
    if (!parts->options || !parts->fixed_bytes) {
        slc_slot_parts_fini(parts);
        return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for %u slots", parts->slots);
    }
    for (uint32_t u = 0; u < request->job->unit_count; u++) parts->options[u] = slc_allowed_of(request, u);
    if (detail != SLC_EVERYTHING) drop_dominated(parts);
    slc_agreement_init(parts);
    sum_fixed_bytes(parts);
    status = list_families(parts);
    if (status) slc_slot_parts_fini(parts);
    return status;
}

void slc_slot_parts_fini(slc_slot_model_parts *parts)
{
    free(parts->evaluated_bytes);
    free(parts->evaluated);
    free(parts->families);
    free(parts->fixed_bytes);
    free(parts->options);
    *parts = (slc_slot_model_parts){0};
}
