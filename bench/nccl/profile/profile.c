/* Steps, units, times and link are found by the files next to this one; here they become a job. Its layers are the
 * units, in the opposite order of their reductions.
 * nccl_profile_test.c covers this file. */
#include "bench/nccl/profile/profile.h"

#include "bench/cli/output/result_file.h"
#include "bench/nccl/profile/profile_maker.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NCCL_FLOAT32 = 7, NCCL_FLOAT16 = 6, ADAM_STATES = 2, BLOCKS_TO_SATURATE = 8 };

static const uint64_t mib = 1 << 20, most_block_bytes = UINT64_C(1) << 32;

/* ---- Times ---- */

static bool same_reduction(const slc_step_operation *a, const slc_step_operation *b, uint32_t world)
{
    uint64_t longer = a->elements > b->elements ? a->elements : b->elements;
    uint64_t shorter = a->elements > b->elements ? b->elements : a->elements;
    bool sharded = a->operation == SLC_RECORD_REDUCE_SCATTER;
    uint64_t padding = sharded ? UINT64_C(64) * world + longer / 100 : 0; /* shards are padded for the world */
    return a->dtype == b->dtype && longer - shorter <= padding;
}

/* A run on one rank may send no gathers and may reduce otherwise; reductions are matched by order and size. */
static sluice_status match_reductions(const slc_profile_maker *m, const slc_job_steps *steps,
                                      const slc_step_units *units)
{
    if (units->count != m->units.count)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "its step has %zu reductions, the profile's has %zu; run the same "
                         "program with the same settings on one rank",
                         units->count, m->units.count);
    for (size_t u = 0; u < units->count; u++) {
        const slc_step_operation *mine = &m->steps.operations[m->units.units[u].reduction];
        const slc_step_operation *other = &steps->operations[units->units[u].reduction];
        if (same_reduction(mine, other, m->steps.world)) continue;
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "its reduction %zu has %llu elements of %s, the profile's has %llu of %s; run the same "
                         "program with the same settings on one rank",
                         u + 1, (unsigned long long)other->elements, slc_nccl_dtype_name(other->dtype),
                         (unsigned long long)mine->elements, slc_nccl_dtype_name(mine->dtype));
    }
    return SLUICE_OK;
}

static sluice_status take_compute_times(slc_profile_maker *m, const slc_nccl_records *compute)
{
    slc_job_steps steps = {0};
    slc_step_units units = {0};
    slc_compute_times times = {0};
    sluice_status status = slc_job_steps_find(compute, &steps);
    if (!status && steps.world != 1)
        status = slc_error(SLUICE_ERR_ARGUMENT,
                           "it is of %u ranks; run the program on one rank, where nothing waits "
                           "for others",
                           steps.world);
    if (!status) status = slc_step_units_find(&steps, &units);
    if (!status) status = match_reductions(m, &steps, &units);
    if (!status) status = slc_compute_times_measure(&steps, &units, &times);
    if (!status) {
        slc_compute_times_free(&m->times);
        m->times = times;
        m->computed_apart = true;
    }
    slc_step_units_free(&units);
    slc_job_steps_free(&steps);
    return status ? slc_error_context(status, "the run for compute times") : SLUICE_OK;
}

/* The first unit's backward begins where the forward ends, which cannot be seen: it is taken to be as fast as the
 * others' for its bytes, and at most two thirds of the time (a backward is about twice a forward), or what its own
 * gather leaves. */
static double first_backward_s(const slc_profile_maker *m)
{
    double others_s = 0, others_bytes = 0, most = fmin(m->times.forward.high_s * 2 / 3, m->times.backward[0].high_s);
    for (size_t u = 1; u < m->units.count; u++) {
        others_s += m->times.backward[u].high_s;
        others_bytes += (double)m->steps.operations[m->units.units[u].reduction].bytes;
    }
    others_s = fmin(others_s, m->times.together.high_s); /* a sum of upper bounds is more than together they took */
    if (!(others_bytes > 0)) return most;
    double bytes = (double)m->steps.operations[m->units.units[0].reduction].bytes;
    return fmin(others_s / others_bytes * bytes, most);
}

/* Divides the time of the optimizer and the forward among the layers' forwards, in proportion to their bytes. It is
 * measured together with the first backward, which is taken off before. */
static void set_times(slc_profile_maker *m)
{
    uint32_t layers = m->draft.job.layer_count;
    double first_s = first_backward_s(m), forward_s = m->times.forward.high_s - first_s, bytes = 0;
    for (uint32_t l = 0; l < layers; l++) bytes += (double)slc_maker_reduction(m, l)->bytes;
    for (uint32_t l = 0; l < layers; l++) {
        double share = (double)slc_maker_reduction(m, l)->bytes / bytes;
        size_t u = layers - 1 - l;
        m->draft.times.slot_s[slc_forward_slot(l)] = m->draft.times.recompute_s[l] = forward_s * share;
        m->draft.times.slot_s[slc_backward_slot(&m->draft.job, l)] = u ? m->times.backward[u].high_s : first_s;
    }
    m->draft.times.link = m->link.link;
    slc_times_estimate_exchange(&m->draft.times);
}

/* ---- The job ---- */

/* Values have the type of their gathers; without gathers, that of their gradients. */
static unsigned value_dtype(const slc_profile_maker *m, uint32_t layer)
{
    const slc_step_unit *unit = &m->units.units[m->units.count - 1 - layer];
    return unit->forward_gather == SLC_NO_GATHER ? slc_maker_reduction(m, layer)->dtype
                                                 : m->steps.operations[unit->forward_gather].dtype;
}

static uint64_t block_bytes(const slc_profile_maker *m)
{
    uint64_t block = slc_round_up(m->link.link.block_bytes / BLOCKS_TO_SATURATE + 1, mib);
    return block < most_block_bytes ? block : most_block_bytes;
}

static void make_units(slc_profile_maker *m)
{
    slc_profile_draft *draft = &m->draft;
    bool half_wire = true;
    for (uint32_t l = 0; l < draft->job.layer_count; l++) {
        unsigned dtype = value_dtype(m, l);
        bool narrow = dtype != NCCL_FLOAT32;
        half_wire &= !narrow || slc_maker_reduction(m, l)->dtype != NCCL_FLOAT32;
        snprintf(draft->names[l], sizeof draft->names[l], "unit.%u", l);
        m->half[l] = dtype == NCCL_FLOAT16;
        draft->uses[l] = (slc_use){l, true};
        draft->job.layers[l] = draft->names[l];
        slc_profile_draft_unit(draft, draft->names[l], slc_maker_reduction(m, l)->elements, block_bytes(m),
                               &draft->uses[l], 1)
            ->dtype = narrow ? SLUICE_BF16 : SLUICE_FP32;
    }
    m->draft.job.wire = half_wire ? SLUICE_BF16 : SLUICE_FP32;
    m->link.link.block_bytes = slc_round_up(m->link.link.block_bytes + 1, block_bytes(m));
    if (m->link.link.block_bytes > UINT64_C(1) << 40) m->link.link.block_bytes = UINT64_C(1) << 40;
}

static sluice_status make_job(slc_profile_maker *m)
{
    sluice_status status = slc_profile_draft_init(&m->draft, (uint32_t)m->units.count);
    m->half = calloc(m->units.count + 1, sizeof *m->half);
    if (status || !m->half) return status ? status : slc_error(SLUICE_ERR_MEMORY, "profile");
    m->draft.job.world = m->steps.world;
    m->draft.job.micro_batches = 1;
    m->draft.job.states = ADAM_STATES;
    m->draft.job.reserved_bytes = m->reserved_bytes;
    make_units(m);
    set_times(m);
    return SLUICE_OK;
}

/* ---- The profile ---- */

/* Writes the program's name, without its folder and its arguments; that of the script if the program is Python. */
static void name_model(const slc_nccl_records *records, char out[128])
{
    const char *at = records->processes[0].header.command, *python = "python";
    size_t length = 0, folder = 0;
    for (int word = 0; word < 2; word++) {
        folder = 0;
        length = strcspn(at, " ");
        for (size_t i = 0; i < length; i++)
            if (at[i] == '/') folder = i + 1;
        bool script = !word && !strncmp(at + folder, python, strlen(python)) && at[length] && at[length + 1] != '-';
        if (!script) break;
        at += length + 1;
    }
    snprintf(out, 128, "%.*s", (int)slc_least(length - folder, 127), at + folder);
}

static sluice_status set_tensors(const slc_profile_maker *m, slc_profile *profile)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t l = 0; l < m->draft.job.layer_count && !status; l++) {
        const slc_step_operation *reduction = slc_maker_reduction(m, l);
        status = slc_profile_set_tensors(profile, l, reduction->parts, (uint32_t)reduction->part_count);
    }
    return status;
}

static sluice_status write_profile(const slc_profile_maker *m, const char *out)
{
    char model[128], *source = NULL, *text = NULL;
    slc_profile *profile = NULL;
    name_model(m->records, model);
    sluice_status status = slc_profile_source(m, &source);
    if (!status) status = slc_profile_draft_finish(&m->draft, model, source, &profile);
    if (!status) status = set_tensors(m, profile);
    for (uint32_t l = 0; l < m->draft.job.layer_count && !status; l++) profile->block_bytes[l] = block_bytes(m);
    if (!status) status = slc_profile_to_json(profile, &text);
    if (!status) status = slc_result_file_write_text(out, text);
    slc_profile_destroy(profile);
    free(text);
    free(source);
    return status;
}

static void maker_fini(slc_profile_maker *m)
{
    slc_job_steps_free(&m->steps);
    slc_step_units_free(&m->units);
    slc_compute_times_free(&m->times);
    slc_profile_draft_fini(&m->draft);
    free(m->half);
}

sluice_status slc_nccl_profile(const slc_nccl_records *records, const slc_nccl_records *compute,
                               uint64_t reserved_bytes, const char *out)
{
    slc_profile_maker m = {.records = records, .reserved_bytes = reserved_bytes};
    sluice_status status = slc_job_steps_find(records, &m.steps);
    if (!status) status = slc_link_figures_fit(&m.steps, &m.link);
    if (!status) status = slc_step_units_find(&m.steps, &m.units);
    if (!status) status = slc_compute_times_measure(&m.steps, &m.units, &m.times);
    m.step_s = m.times.step_s;
    if (!status && compute) status = take_compute_times(&m, compute);
    if (!status) status = make_job(&m);
    if (!status) status = write_profile(&m, out);
    maker_fini(&m);
    return status;
}
