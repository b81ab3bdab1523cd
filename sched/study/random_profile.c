/* Draws a profile: sizes first, then times that give the ratio of compute to communication that was asked for. */
#include "sched/study/random_profile.h"

#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "lib/plan/profile_draft.h"

#include <math.h>
#include <stdio.h>

enum { LAYERS_MAX = 4096, TIED_MOST = 8, TABLE_ROWS = 5000 };
static const double bytes_most = 1e12, activations_most = 1e3;

slc_random_options slc_random_defaults(void)
{
    return (slc_random_options){.layers = {4, 24},
                                .unit_bytes = {10e6, 100e6},
                                .compute_ratio = {0.4, 2.5},
                                .time_spread = {1.3, 1.3},
                                .activations = {0.2, 2},
                                .bytes_per_s = 1.25e9,
                                .latency_s = 50e-6,
                                .kappa = 0.1,
                                .sigma = 1.05,
                                .update_s_per_element = 2e-10,
                                .compress_s_per_element = 1.6e-9,
                                .apply_s_per_element = 1.6e-9,
                                .average_s_per_element = 8e-10,
                                .tied_share = 0.3,
                                .unit_blocks = 16};
}

/* ---- Dice ---- */

typedef struct {
    uint64_t seed, drawn;
} dice;

static uint32_t below(dice *d, uint32_t limit)
{
    return (uint32_t)slc_random_below(d->seed, 0, d->drawn++, limit);
}

static double share(dice *d)
{
    return (double)slc_random_below(d->seed, 0, d->drawn++, UINT64_C(1) << 53) * 0x1p-53;
}

static double draw_from(dice *d, slc_random_range range)
{
    double at = share(d);
    if (range.least == range.most) return range.least;
    return fmin(fmax(exp(log(range.least) + at * (log(range.most) - log(range.least))), range.least), range.most);
}

/* ---- A profile being drawn ---- */

typedef struct {
    const slc_random_options *options;
    dice dice;
    uint64_t block_bytes;
    slc_profile_draft draft;
} maker;

static bool is_range(slc_random_range range, double least, double most)
{
    return range.least >= least && range.most >= range.least && range.most <= most;
}

static sluice_status check_options(const slc_random_options *o)
{
    bool ranges = is_range(o->layers, 1, LAYERS_MAX) && is_range(o->unit_bytes, 4, bytes_most) &&
                  is_range(o->compute_ratio, 1e-6, 1e6) && is_range(o->time_spread, 1, 100) &&
                  is_range(o->activations, 1e-6, activations_most);
    if (!ranges)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "random profile: give ranges of 1 to %d layers, 4 to %g bytes a unit, compute ratios of 1e-6 "
                         "to 1e6, spreads of 1 to 100 and activations of 1e-6 to %g",
                         LAYERS_MAX, bytes_most, activations_most);
    bool link = o->bytes_per_s >= 1 && isfinite(o->bytes_per_s) && o->latency_s >= 0 && isfinite(o->latency_s) &&
                o->sigma >= 1 && o->kappa >= 0 && o->kappa <= o->sigma && o->update_s_per_element >= 0;
    if (!link || !o->unit_blocks || o->world > SLC_PROFILE_WORLD_MAX || o->micro_batches > 1024)
        return slc_error(SLUICE_ERR_ARGUMENT, "random profile: give a bandwidth, times of at least 0, kappa from 0 to "
                                              "sigma, sigma of at least 1, some blocks and at most 1024 micro-batches");
    return SLUICE_OK;
}

static void add_unit(maker *m, const char *name, double bytes, slc_use *uses, uint32_t use_count)
{
    slc_profile_draft_unit(&m->draft, name, (uint64_t)(bytes / 4), m->block_bytes, uses, use_count);
}

/* Slots take time in proportion to the parameters that they work with, backward twice the time of forward. */
static void add_layer(maker *m, uint32_t l, double bytes)
{
    slc_job *job = &m->draft.job;
    snprintf(m->draft.names[l], SLC_DRAFT_NAME_BYTES, "h.%u", l);
    job->layers[l] = m->draft.names[l];
    m->draft.can_recompute[l] = m->options->can_recompute;
    m->draft.uses[l] = (slc_use){l, true};
    add_unit(m, m->draft.names[l], bytes, &m->draft.uses[l], 1);
    double spread = draw_from(&m->dice, m->options->time_spread);
    slc_random_range off = {1 / spread, spread};
    m->draft.times.slot_s[l] = bytes * draw_from(&m->dice, off);
    m->draft.times.slot_s[slc_backward_slot(job, l)] = 2 * bytes * draw_from(&m->dice, off);
}

/* A tenth of the activations is the layer's output, which the next layer's backward reads; recomputation drops the
 * rest. */
static void add_activations(maker *m, uint32_t l, double bytes)
{
    const slc_job *job = &m->draft.job;
    double kept = bytes * draw_from(&m->dice, m->options->activations);
    uint32_t last = job->layer_count - 1, next = l < last ? l + 1 : l, back = slc_backward_slot(job, l);
    slc_profile_draft_activation(
        &m->draft, (slc_activation_life){"x", (uint64_t)(0.1 * kept), l, slc_backward_slot(job, next), next, false});
    slc_profile_draft_activation(
        &m->draft, (slc_activation_life){"kept", (uint64_t)(0.9 * kept), l, back, l, m->options->can_recompute});
}

/* Splits the unit made last into one of the last layer, and the rows that the first layer looks up. */
static void split_tied(maker *m)
{
    uint32_t u = m->draft.job.unit_count - 1;
    slc_unit *split = &m->draft.job.units[u], *rows = &m->draft.job.units[m->draft.job.unit_count++];
    uint64_t parameters = m->draft.parameters[u], count = parameters < TABLE_ROWS ? parameters : TABLE_ROWS;
    *rows = (slc_unit){.name = "rows of tied",
                       .trainable = true,
                       .uses = &split->uses[0],
                       .use_count = 1,
                       .role = SLC_UNIT_ROWS,
                       .partner = u,
                       .row_elements = parameters / count,
                       .row_count = count,
                       .most_rows = 1 + below(&m->dice, (uint32_t)(count + 1) / 2)};
    split->role = SLC_UNIT_SPLIT;
    split->partner = u + 1;
    split->uses++;
    split->use_count = 1;
    slc_profile_unit_lengths(0, 0, m->draft.job.world, rows);
}

static void add_tied(maker *m)
{
    uint32_t layers = m->draft.job.layer_count;
    bool tied = share(&m->dice) < m->options->tied_share;
    double bytes = draw_from(&m->dice, m->options->unit_bytes) * (1 + (TIED_MOST - 1) * share(&m->dice));
    if (!tied || layers < 2) return;
    m->draft.uses[layers] = (slc_use){0, m->options->can_recompute};
    m->draft.uses[layers + 1] = (slc_use){layers - 1, true};
    add_unit(m, "tied", bytes, &m->draft.uses[layers], 2);
    if (m->options->split_share > 0 && share(&m->dice) < m->options->split_share) split_tied(m);
}

static void scale_slots(maker *m)
{
    slc_job *job = &m->draft.job;
    double communication = 0, compute = 0;
    for (uint32_t u = 0; u < job->unit_count; u++)
        communication +=
            slc_operation_s(job, &m->draft.times, SLC_ITEM_REDUCE_SCATTER, &job->units[u], job->units[u].elements) +
            slc_operation_s(job, &m->draft.times, SLC_ITEM_GATHER_VALUE, &job->units[u], job->units[u].elements);
    for (uint32_t s = 0; s < slc_job_slots(job); s++) compute += m->draft.times.slot_s[s] * job->micro_batches;
    double scale = draw_from(&m->dice, m->options->compute_ratio) * communication / compute;
    if (job->world == 1) scale = 1e-9; /* nothing is exchanged: times of a giga-FLOP machine */
    for (uint32_t s = 0; s < slc_job_slots(job); s++) m->draft.times.slot_s[s] *= scale;
    for (uint32_t l = 0; l < job->layer_count; l++) m->draft.times.recompute_s[l] = m->draft.times.slot_s[l];
}

static sluice_status begin_draft(maker *m)
{
    const slc_random_options *o = m->options;
    uint32_t ranks = 2u << below(&m->dice, 4), several = below(&m->dice, 3) ? 1 : 2 + below(&m->dice, 3);
    sluice_status status = slc_profile_draft_init(&m->draft, (uint32_t)lround(draw_from(&m->dice, o->layers)));
    if (status) return status;
    slc_job *job = &m->draft.job;
    slc_times *times = &m->draft.times;
    job->world = o->world ? o->world : ranks;
    job->micro_batches = o->micro_batches ? o->micro_batches : several;
    job->states = 2;
    double mean = sqrt(o->unit_bytes.least * o->unit_bytes.most);
    m->block_bytes = (uint64_t)(mean / o->unit_blocks);
    times->update_s_per_element = o->update_s_per_element;
    times->compress_s_per_element = o->compress_s_per_element;
    times->apply_s_per_element = o->apply_s_per_element;
    times->average_s_per_element = o->average_s_per_element;
    times->link = (slc_link){.reduce_scatter = {o->latency_s, o->bytes_per_s},
                             .all_gather = {o->latency_s, o->bytes_per_s},
                             .kappa = o->kappa,
                             .sigma = o->sigma,
                             .thread_moves = o->thread_moves,
                             .block_bytes = m->block_bytes};
    return SLUICE_OK;
}

static sluice_status make_profile(maker *m, uint64_t seed, slc_profile **out)
{
    sluice_status status = begin_draft(m);
    if (status) return status;
    for (uint32_t l = 0; l < m->draft.job.layer_count; l++) {
        double bytes = draw_from(&m->dice, m->options->unit_bytes);
        add_layer(m, l, bytes);
        add_activations(m, l, bytes);
    }
    add_tied(m);
    scale_slots(m);
    char source[64];
    snprintf(source, sizeof source, "drawn: seed %llu", (unsigned long long)seed);
    return slc_profile_draft_finish(&m->draft, "random", source, out);
}

sluice_status slc_random_profile(const slc_random_options *options, uint64_t seed, slc_profile **out)
{
    sluice_status status = check_options(options);
    if (status) return status;
    maker m = {.options = options, .dice = {.seed = seed}};
    status = make_profile(&m, seed, out);
    slc_profile_draft_fini(&m.draft);
    return status;
}
