/* Makes a profile of a table of layers. */
#include "sched/study/published.h"

#include "lib/base/status.h"
#include "lib/plan/profile_draft.h"
#include "sched/study/layer_table.h"
#include "sched/study/made_profile.h"

#include <stdio.h>
#include <string.h>

enum { BATCH_MAX = 4096, BLOCKS_MOST = 64, NUMBER_BYTES = 4, MIB = 1 << 20, MODEL_BYTES = 96 };

static const slc_layer_model *const lists[] = {slc_image_models, slc_text_models};

static const slc_layer_model *model_at(size_t index)
{
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (const slc_layer_model *m = lists[l]; m->name; m++)
            if (!index--) return m;
    return NULL;
}

const char *slc_published_name(size_t index)
{
    const slc_layer_model *model = model_at(index);
    return model ? model->name : NULL;
}

/* ---- A profile being made ---- */

typedef struct {
    const slc_published_options *options;
    slc_made_options speeds; /* what the cluster gives */
    slc_layer_table table;
    uint64_t batch;
    slc_profile_draft draft;
} maker;

static void set_link(maker *m)
{
    const slc_made_options *s = &m->speeds;
    slc_times *times = &m->draft.times;
    times->update_s_per_element = s->update_s_per_element;
    times->link = (slc_link){.reduce_scatter = {s->latency_s, s->bytes_per_s},
                             .all_gather = {s->latency_s, s->bytes_per_s},
                             .kappa = s->kappa,
                             .sigma = s->sigma,
                             .thread_moves = s->thread_moves,
                             .block_bytes = slc_made_block_bytes(s)};
}

static void add_unit(maker *m, const char *name, double parameters, slc_use *uses, uint32_t use_count)
{
    uint64_t least = (uint64_t)parameters * NUMBER_BYTES / BLOCKS_MOST / MIB * MIB + MIB,
             block = m->draft.times.link.block_bytes;
    slc_profile_draft_unit(&m->draft, name, (uint64_t)parameters, block > least ? block : least, uses, use_count);
}

static void add_units(maker *m)
{
    const slc_layer_table *t = &m->table;
    uint32_t last = t->count - 1;
    for (uint32_t l = 0; l <= last; l++) {
        m->draft.uses[l] = (slc_use){l, !t->layers[l].looks_up};
        add_unit(m, t->layers[l].name, t->layers[l].parameters, &m->draft.uses[l], 1);
    }
    if (!(t->tied > 0)) return;
    slc_use *uses = &m->draft.uses[last + 1];
    uses[0] = (slc_use){0, false};
    uses[1] = (slc_use){last, true};
    add_unit(m, "tied", t->tied, uses, 2);
}

/* Sets the slots of a micro-batch of one sample. */
static void set_slots(maker *m)
{
    const slc_job *job = &m->draft.job;
    slc_times *times = &m->draft.times;
    double speed = m->speeds.device_flops * m->speeds.efficiency;
    for (uint32_t l = 0; l < m->table.count; l++) {
        double forward_s = m->table.layers[l].flops / speed;
        times->slot_s[slc_forward_slot(l)] = times->recompute_s[l] = forward_s;
        times->slot_s[slc_backward_slot(job, l)] = 2 * forward_s;
    }
}

/* Finds the batch that the ratio asks for, and makes the slots as long as it takes. */
static void set_batch(maker *m)
{
    const slc_job *job = &m->draft.job;
    slc_times *times = &m->draft.times;
    double compute_s = 0, communication_s = 0;
    for (uint32_t s = 0; s < slc_job_slots(job); s++) compute_s += times->slot_s[s];
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        communication_s += slc_operation_s(job, times, SLC_ITEM_REDUCE_SCATTER, unit, unit->elements) +
                           slc_operation_s(job, times, SLC_ITEM_GATHER_VALUE, unit, unit->elements);
    }
    double wanted_s = m->options->compute_ratio * communication_s;
    for (m->batch = 1; m->batch < BATCH_MAX && compute_s * (double)m->batch < wanted_s;) m->batch *= 2;
    for (uint32_t s = 0; s < slc_job_slots(job); s++) times->slot_s[s] *= (double)m->batch;
    for (uint32_t l = 0; l < m->table.count; l++) times->recompute_s[l] *= (double)m->batch;
}

/* True if the layer can recompute. One that only looks rows up keeps nothing that is worth recomputing, and its
 * backward reads no values. */
static bool can_recompute(const maker *m, uint32_t layer)
{
    return m->options->can_recompute && !m->table.layers[layer].looks_up;
}

static void add_activations(maker *m)
{
    const slc_job *job = &m->draft.job;
    uint32_t end = m->table.count - 1;
    for (uint32_t l = 0; l <= end; l++) {
        const slc_table_layer *layer = &m->table.layers[l];
        uint64_t output = (uint64_t)(layer->output * NUMBER_BYTES) * m->batch,
                 kept = (uint64_t)(layer->kept * NUMBER_BYTES) * m->batch;
        uint32_t reader = l + (layer->readers ? layer->readers : 1), back = slc_backward_slot(job, l);
        if (reader > end) reader = end;
        uint32_t read_back = slc_backward_slot(job, reader);
        bool again = can_recompute(m, l);
        if (output)
            slc_profile_draft_activation(&m->draft, (slc_activation_life){"x", output, l, read_back, reader, false});
        if (kept) slc_profile_draft_activation(&m->draft, (slc_activation_life){"kept", kept, l, back, l, again});
        if (output)
            slc_profile_draft_activation(&m->draft, (slc_activation_life){"dx", output, read_back, back, 0, false});
    }
}

static sluice_status make_profile(maker *m, const slc_layer_model *model, slc_profile **out)
{
    model->write(&m->table);
    sluice_status status = m->table.failed ? slc_error(SLUICE_ERR_MEMORY, "layers of %s", model->name)
                                           : slc_profile_draft_init(&m->draft, m->table.count);
    if (status) return status;
    slc_job *job = &m->draft.job;
    if (m->options->world) m->speeds.world = m->options->world;
    job->world = m->speeds.world;
    job->micro_batches = 1;
    job->states = 2;
    for (uint32_t l = 0; l < m->table.count; l++) {
        job->layers[l] = m->table.layers[l].name;
        m->draft.can_recompute[l] = can_recompute(m, l);
    }
    set_link(m);
    set_slots(m);
    add_units(m);
    set_batch(m);
    add_activations(m);
    char source[MODEL_BYTES];
    snprintf(source, sizeof source, "published: %s, %u ranks, %llu samples", m->options->cluster, job->world,
             (unsigned long long)m->batch);
    return slc_profile_draft_finish(&m->draft, model->name, source, out);
}

sluice_status slc_published_profile(const slc_published_options *options, slc_profile **out)
{
    maker m = {.options = options};
    sluice_status status = slc_made_cluster(options->cluster, &m.speeds);
    if (status) return status;
    if (!(options->compute_ratio > 0))
        return slc_error(SLUICE_ERR_ARGUMENT, "compute of %g times the communication; give a number above 0",
                         options->compute_ratio);
    const slc_layer_model *model;
    size_t i = 0;
    while ((model = model_at(i++)) && strcmp(model->name, options->model)) continue;
    if (!model) return slc_error(SLUICE_ERR_ARGUMENT, "no published model \"%s\"", options->model);
    status = make_profile(&m, model, out);
    slc_layer_table_fini(&m.table);
    slc_profile_draft_fini(&m.draft);
    return status;
}
