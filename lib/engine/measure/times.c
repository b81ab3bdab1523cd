/* Times of slots and updates. Those of slots are medians of their last samples, lengthened alike until together they
 * take what they take in a usual step; those of updates are means. */
#include "lib/engine/measure/measure.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/plan/measured/fit_link.h"
#include "lib/plan/measured/rank_times.h"
#include "lib/engine/runtime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

sluice_status slc_measure_create(const slc_job *job, slc_measure **out)
{
    slc_measure *measure = calloc(1, sizeof *measure);
    if (measure) {
        measure->slots = calloc((size_t)slc_job_slots(job) + 1, sizeof *measure->slots);
        measure->recompute = calloc((size_t)job->layer_count + 1, sizeof *measure->recompute);
    }
    *out = measure;
    if (measure && measure->slots && measure->recompute) return SLUICE_OK;
    slc_measure_destroy(measure);
    *out = NULL;
    return slc_error(SLUICE_ERR_MEMORY, "times of %u layers", job->layer_count);
}

void slc_measure_destroy(slc_measure *measure)
{
    if (!measure) return;
    for (uint32_t i = 0; measure->train_events && i <= SLC_TRAIN_MAX; i++) slc_event_destroy(&measure->train_events[i]);
    free(measure->train_events);
    free(measure->slots);
    free(measure->recompute);
    free(measure);
}

void slc_measure_reset(slc_measure *measure, const slc_job *job)
{
    memset(measure->slots, 0, slc_job_slots(job) * sizeof *measure->slots);
    memset(measure->recompute, 0, job->layer_count * sizeof *measure->recompute);
    measure->update = measure->inspection = measure->computed_update = (slc_measured){0};
    memset(measure->compression, 0, sizeof measure->compression);
    measure->kept.count = measure->met = measure->begun = 0;
    measure->extents = measure->late_s = measure->updated_before_s = 0;
    measure->step_from_ns = 0;
}

static void add_sample(slc_samples *samples, double seconds)
{
    samples->seconds[samples->count++ % SLC_MEASURE_SAMPLES] = seconds;
}

static double median_of(const slc_samples *samples)
{
    double values[SLC_MEASURE_SAMPLES];
    memcpy(values, samples->seconds, sizeof values);
    return slc_fit_median(values, samples->count < SLC_MEASURE_SAMPLES ? samples->count : SLC_MEASURE_SAMPLES);
}

void slc_measure_slot_begin(slc_measure *measure)
{
    measure->recomputed_s = 0;
    measure->slot_began_ns = slc_clock_ns();
}

void slc_measure_slot_end(slc_measure *measure, uint32_t slot)
{
    double seconds = slc_seconds(slc_clock_ns() - measure->slot_began_ns);
    slc_measure_add_slot(measure, slot, seconds - measure->recomputed_s);
}

void slc_measure_add_slot(slc_measure *measure, uint32_t slot, double seconds)
{
    add_sample(&measure->slots[slot], seconds);
    measure->step_compute_s += seconds;
}

void slc_measure_recompute(slc_measure *measure, uint32_t layer, uint64_t began_ns)
{
    measure->recomputed_s = slc_seconds(slc_clock_ns() - began_ns);
    slc_measure_add_recompute(measure, layer, measure->recomputed_s);
}

void slc_measure_add_recompute(slc_measure *measure, uint32_t layer, double seconds)
{
    add_sample(&measure->recompute[layer], seconds);
    measure->step_compute_s += seconds;
}

void slc_measure_took(slc_measured *measured, uint64_t took_ns, uint64_t elements)
{
    measured->seconds += slc_seconds(took_ns);
    measured->elements += elements;
}

void slc_measure_add(slc_measured *measured, uint64_t began_ns, uint64_t elements)
{
    slc_measure_took(measured, slc_clock_ns() - began_ns, elements);
}

sluice_status slc_measure_slowest(sluice_runtime *rt, double *values, size_t count)
{
    if (!count || rt->size == 1) return SLUICE_OK;
    double *all = malloc((size_t)rt->size * count * sizeof *all);
    if (!all) return slc_runtime_fail(rt, slc_error(SLUICE_ERR_MEMORY, "figures of %d ranks", rt->size));
    sluice_status status = sluice_world_all_gather(rt->world, values, count * sizeof *values, all);
    for (size_t i = 0; !status && i < (size_t)rt->size * count; i++)
        if (all[i] > values[i % count]) values[i % count] = all[i];
    free(all);
    return status;
}

static double per_element(const slc_measured *measured)
{
    return measured->elements ? measured->seconds / (double)measured->elements : 0;
}

/* Seconds of an element's update on either lane, 0 if none ran there. Both include the inspection, wherever that
 * runs, because an element is inspected once. */
static void find_update_times(const slc_measure *m, double *on_thread, double *on_compute)
{
    double inspection =
        per_element(&(slc_measured){m->inspection.seconds, m->update.elements + m->computed_update.elements});
    *on_thread = m->update.elements ? inspection + per_element(&m->update) : 0;
    *on_compute = m->computed_update.elements ? inspection + per_element(&m->computed_update) : 0;
}

sluice_status slc_measure_updates(sluice_runtime *rt, double *s_per_element)
{
    double on_compute;
    find_update_times(rt->measure, s_per_element, &on_compute);
    return slc_measure_slowest(rt, s_per_element, 1);
}

double slc_measured_slot_s(const slc_measure *measure, uint32_t slot)
{
    return median_of(&measure->slots[slot]);
}

bool slc_measure_lacks_slots(const slc_measure *measure, const slc_job *job)
{
    bool lacks = false;
    for (uint32_t s = 0; s < slc_job_slots(job); s++) lacks |= !measure->slots[s].count;
    return lacks;
}

double slc_measured_compute_s(const slc_measure *measure, const slc_job *job)
{
    double sum_s = 0;
    for (uint32_t s = 0; s < slc_job_slots(job); s++) sum_s += median_of(&measure->slots[s]);
    return sum_s * job->micro_batches;
}

double slc_measured_lengthening(const slc_measure *measure, const slc_job *job)
{
    enum { STEPS_LEAST = 3 }; /* a usual one of fewer steps leaves none out, however slow */
    double recompute_s = 0;
    if (measure->kept.count < STEPS_LEAST) return 1;
    for (uint32_t l = 0; l < job->layer_count; l++) recompute_s += median_of(&measure->recompute[l]);
    const double updates_s = measure->computed_update.seconds / (double)measure->kept.count,
                 medians_s = slc_measured_compute_s(measure, job) + recompute_s * job->micro_batches;
    const double usual_s = slc_kept_steps_usual(&measure->kept).compute_s - updates_s;
    return medians_s > 0 ? fmax(usual_s / medians_s, 1) : 1;
}

/* One array holds all that a rank measured, 0 if it measured nothing: slots, recomputations, updates on the
 * communication thread and on the compute lane, the passes. */
enum { REST = 2 + SLC_MEASURE_PASSES };

/* Takes the first `count` times from one rank (lib/plan/measured/rank_times.h); each of the remaining times becomes the
 * largest of all ranks. */
static sluice_status take_from_ranks(sluice_runtime *rt, double *found, size_t count, double *late_s)
{
    const size_t ranks = (size_t)rt->size;
    double *all = malloc(ranks * count * sizeof *all);
    if (!all) return slc_runtime_fail(rt, slc_error(SLUICE_ERR_MEMORY, "times of %zu ranks", ranks));
    sluice_status status = sluice_world_all_gather(rt->world, found, count * sizeof *found, all);
    if (!status) *late_s = slc_rank_times_take(all, ranks, count, slc_job_slots(&rt->job), found);
    free(all);
    return status ? status : slc_measure_slowest(rt, found + count, REST);
}

static sluice_status gather(sluice_runtime *rt, double *found, double *late_s)
{
    const slc_measure *measure = rt->measure;
    uint32_t slots = slc_job_slots(&rt->job), layers = rt->job.layer_count;
    const double lengthening = slc_measured_lengthening(measure, &rt->job);
    for (uint32_t s = 0; s < slots; s++) found[s] = lengthening * median_of(&measure->slots[s]);
    for (uint32_t l = 0; l < layers; l++) found[slots + l] = lengthening * median_of(&measure->recompute[l]);
    double *rest = found + slots + layers;
    find_update_times(measure, &rest[0], &rest[1]);
    for (int p = 0; p < SLC_MEASURE_PASSES; p++)
        rest[2 + p] = measure->compression[p].elements ? per_element(&measure->compression[p]) : measure->passes_s[p];
    return take_from_ranks(rt, found, (size_t)slots + layers, late_s);
}

/* Adds the time outside of slots and the lateness of ranks. While steps are measured for a first plan, nothing runs
 * next to compute, so ranks come to operations later than under the plan, if anything. A rank that is reached through
 * messages is not seen to come late, so the lateness that slots tell counts too. */
static sluice_status add_step_times(sluice_runtime *rt, double slots_late_s, slc_times *out)
{
    sluice_step_parts usual;
    double late_s;
    sluice_status status = slc_measure_usual_step(rt, &usual, &late_s);
    if (status || !(usual.step_s > 0)) return status;
    out->outside_s = fmax(usual.outside_s, 0);
    out->late_s = fmax(late_s, slots_late_s);
    return SLUICE_OK;
}

static void set_if_found(double *time, double found)
{
    if (found > 0) *time = found;
}

sluice_status slc_measure_set_keeps(const sluice_runtime *rt, slc_times *times)
{
    const bool all = slc_is_stage(&rt->stage); /* a stage's layers are its own, and steps leave none of them out */
    return slc_times_set_keeps(&rt->job, all ? NULL : rt->drawn.keeps, times);
}

sluice_status slc_engine_measure_times(sluice_runtime *rt, slc_times *out)
{
    uint32_t slots = slc_job_slots(&rt->job), layers = rt->job.layer_count;
    double *found = calloc((size_t)slots + layers + REST, sizeof *found);
    sluice_status status = !found                 ? slc_error(SLUICE_ERR_MEMORY, "times")
                           : rt->current.measured ? slc_times_copy(&rt->job, &rt->current.times, out)
                                                  : slc_times_estimate(&rt->job, out);
    if (status) goto out;
    double slots_late_s = 0;
    status = gather(rt, found, &slots_late_s);
    if (!status) status = add_step_times(rt, slots_late_s, out);
    if (status) slc_times_fini(out);
    if (status) goto out;
    for (uint32_t s = 0; s < slots; s++) set_if_found(&out->slot_s[s], found[s]);
    for (uint32_t l = 0; l < layers; l++)
        out->recompute_s[l] = found[slots + l] > 0 ? found[slots + l] : out->slot_s[slc_forward_slot(l)];
    const double *rest = found + slots + layers;
    set_if_found(&out->update_s_per_element, rest[0]);
    set_if_found(&out->update_compute_s_per_element, rest[1]);
    set_if_found(&out->compress_s_per_element, rest[2 + SLC_MEASURE_COMPRESS]);
    set_if_found(&out->apply_s_per_element, rest[2 + SLC_MEASURE_APPLY]);
    set_if_found(&out->average_s_per_element, rest[2 + SLC_MEASURE_AVERAGE]);
    status = slc_measure_set_keeps(rt, out);
    if (status) slc_times_fini(out);

out:
    free(found);
    return status;
}
