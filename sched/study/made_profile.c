/* Makes a profile of a row of shapes. */
#include "sched/study/made_profile.h"

#include "lib/base/status.h"
#include "lib/plan/profile_draft.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VOCABULARY = 50257, LOGITS_ROWS = 1024, NUMBERS_KEPT = 15, BLOCKS_IN_FLIGHT = 4, BLOCKS_TO_SATURATE = 8 };
#define TABLE "embed.wte.weight"
enum { UPDATE_BYTES = 28, PASS_BYTES = 16, AVERAGE_BYTES = 8 }; /* bytes of memory that an element moves */
enum { BATCH_MAX = 1 << 16, MIB = 1 << 20 };

typedef struct {
    const char *name;
    uint32_t blocks, channels, heads, context;
} shape;

static const shape shapes[] = {
    {"gpt2-small", 12, 768, 12, 1024},  {"gpt2-medium", 24, 1024, 16, 1024}, {"gpt2-large", 36, 1280, 20, 1024},
    {"gpt2-xl", 48, 1600, 25, 1024},    {"gpt3-6.7b", 32, 4096, 32, 2048},   {"gpt3-13b", 40, 5120, 40, 2048},
    {"gpt3-175b", 96, 12288, 96, 2048},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Peak speeds for fp32 data as vendors publish them (NVIDIA's with TF32 products, V100 without), links for each rank.
 * The efficiencies and slowdowns are round figures to plan with, not measurements. */
typedef struct {
    const char *name;
    uint32_t world;
    double device_flops, efficiency, bytes_per_s, latency_s, kappa, sigma, update_s_per_element;
    bool thread_moves;
} cluster;

static const cluster clusters[] = {
    {"8xA100-nvlink", 8, 156e12, 0.5, 230e9, 3e-6, 0.05, 1.05, 2e-11, false},
    {"64xA100-200gbit", 64, 156e12, 0.5, 25e9, 2e-6, 0.05, 1.05, 2e-11, false},
    {"256xA100-200gbit", 256, 156e12, 0.5, 25e9, 2e-6, 0.05, 1.05, 2e-11, false},
    {"1024xA100-200gbit", 1024, 156e12, 0.5, 25e9, 2e-6, 0.05, 1.05, 2e-11, false},
    {"64xH100-400gbit", 64, 495e12, 0.4, 50e9, 2e-6, 0.05, 1.05, 1.2e-11, false},
    {"512xH100-400gbit", 512, 495e12, 0.4, 50e9, 2e-6, 0.05, 1.05, 1.2e-11, false},
    {"16xV100-25gbit", 16, 15.7e12, 0.6, 3.125e9, 10e-6, 0.05, 1.05, 4e-11, false},
    {"8xcpu-10gbit", 8, 500e9, 0.7, 1.25e9, 50e-6, 0.2, 1.2, 2e-9, false},
    {"2xcpu-1gbit", 2, 100e9, 0.7, 125e6, 50e-6, 0.2, 1.1, 2e-9, false},
    {"2xcpu-one-host", 2, 100e9, 0.7, 4e9, 20e-6, 1, 1.5, 2e-9, true},
};
enum { CLUSTERS = sizeof clusters / sizeof *clusters };

const char *slc_made_model_name(size_t index)
{
    return index < SHAPES ? shapes[index].name : NULL;
}

const char *slc_made_cluster_name(size_t index)
{
    return index < CLUSTERS ? clusters[index].name : NULL;
}

/* Returns the error "no WHAT NAME; choose one of ...". */
static sluice_status no_such(const char *what, const char *name, const char *(*name_at)(size_t))
{
    char names[512] = "";
    for (size_t i = 0, used = 0; name_at(i) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", name_at(i));
    return slc_error(SLUICE_ERR_ARGUMENT, "no %s \"%s\"; choose one of %s", what, name ? name : "", names);
}

sluice_status slc_made_cluster(const char *name, slc_made_options *options)
{
    for (size_t i = 0; i < CLUSTERS; i++) {
        const cluster *c = &clusters[i];
        if (!name || strcmp(name, c->name)) continue;
        options->cluster = c->name;
        options->world = c->world;
        options->device_flops = c->device_flops;
        options->efficiency = c->efficiency;
        options->bytes_per_s = c->bytes_per_s;
        options->latency_s = c->latency_s;
        options->kappa = c->kappa;
        options->sigma = c->sigma;
        options->update_s_per_element = c->update_s_per_element;
        options->thread_moves = c->thread_moves;
        return SLUICE_OK;
    }
    return no_such("cluster", name, slc_made_cluster_name);
}

/* ---- A model being made ---- */

typedef struct {
    const slc_made_options *options;
    const shape *shape;
    uint64_t context, rows; /* tokens of a sequence, of a micro-batch */
    uint64_t stream;        /* bytes of one number a token and channel */
    uint64_t block_bytes;
    slc_profile_draft draft; /* its names: of layers, then of the activations that blocks keep */
} maker;

static sluice_status check_options(const slc_made_options *o, const shape *s)
{
    double context = o->context ? o->context : s->context;
    if (!o->world || o->world > SLC_PROFILE_WORLD_MAX || !o->batch || o->batch > BATCH_MAX || context > s->context)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "%s: %u ranks, %u sequences of %.0f tokens; give 1 to %d ranks, 1 to %d sequences and at most %u "
            "tokens",
            s->name, o->world, o->batch, context, SLC_PROFILE_WORLD_MAX, BATCH_MAX, s->context);
    if (!(o->device_flops >= 1) || !(o->efficiency > 0 && o->efficiency <= 1) || !isfinite(o->device_flops))
        return slc_error(SLUICE_ERR_ARGUMENT, "%g FLOP/s with an efficiency of %g; give a speed and a part of it",
                         o->device_flops, o->efficiency);
    double sigma = o->sigma == 0 ? 1 : o->sigma;
    bool link = o->bytes_per_s >= 1 && isfinite(o->bytes_per_s) && o->latency_s >= 0 && isfinite(o->latency_s);
    if (!link || !(sigma >= 1 && o->kappa >= 0 && o->kappa <= sigma) || !(o->update_s_per_element >= 0))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "a link of %g bytes a second, latency %g s, kappa %g, sigma %g, updates of %g s an element; "
                         "give a bandwidth, times of at least 0, sigma of at least 1 and kappa from 0 to sigma",
                         o->bytes_per_s, o->latency_s, o->kappa, sigma, o->update_s_per_element);
    return SLUICE_OK;
}

/* Solves V (N-1) / (N bandwidth) = 19 latencies, which is 95 % of the bandwidth. */
static uint64_t saturating_bytes(const slc_made_options *o)
{
    double bytes = 19 * o->latency_s * o->world * o->bytes_per_s;
    return bytes < (double)(UINT64_C(1) << 40) ? (uint64_t)bytes : UINT64_C(1) << 40;
}

uint64_t slc_made_block_bytes(const slc_made_options *options)
{
    return (saturating_bytes(options) / BLOCKS_TO_SATURATE + MIB) / MIB * MIB;
}

static void set_link(maker *m)
{
    const slc_made_options *o = m->options;
    uint64_t saturating = saturating_bytes(o);
    m->block_bytes = slc_made_block_bytes(o);
    m->draft.times.update_s_per_element = o->update_s_per_element;
    m->draft.times.compress_s_per_element = m->draft.times.apply_s_per_element =
        o->update_s_per_element * PASS_BYTES / UPDATE_BYTES;
    m->draft.times.average_s_per_element = o->update_s_per_element * AVERAGE_BYTES / UPDATE_BYTES;
    m->draft.times.link = (slc_link){.reduce_scatter = {o->latency_s, o->bytes_per_s},
                                     .all_gather = {o->latency_s, o->bytes_per_s},
                                     .kappa = o->kappa,
                                     .sigma = o->sigma == 0 ? 1 : o->sigma,
                                     .thread_moves = o->thread_moves,
                                     .block_bytes = (saturating + m->block_bytes) / m->block_bytes * m->block_bytes};
}

/* ---- The parts of a model ---- */

static void add_layer(maker *m, uint32_t l, double flops_a_token)
{
    const uint32_t blocks = m->shape->blocks;
    slc_profile_draft *draft = &m->draft;
    bool block = l > 0 && l <= blocks;
    if (block)
        snprintf(draft->names[l], SLC_DRAFT_NAME_BYTES, "h.%u", l - 1);
    else
        snprintf(draft->names[l], SLC_DRAFT_NAME_BYTES, l ? "head" : "embed");
    draft->job.layers[l] = draft->names[l];
    draft->can_recompute[l] = block && m->options->can_recompute;
    double forward_s = flops_a_token * (double)m->rows / (m->options->device_flops * m->options->efficiency);
    draft->times.slot_s[l] = forward_s;
    draft->times.slot_s[slc_backward_slot(&draft->job, l)] = 2 * forward_s;
    draft->times.recompute_s[l] = forward_s;
}

static void add_layers(maker *m)
{
    double d = m->shape->channels, block = 12 * d * d + 13 * d;
    add_layer(m, 0, 4 * d);
    for (uint32_t l = 1; l <= m->shape->blocks; l++) add_layer(m, l, 2 * block + 2 * (double)m->context * d);
    add_layer(m, m->shape->blocks + 1, 2 * (double)VOCABULARY * d);
}

static slc_unit *add_unit(maker *m, const char *name, uint64_t parameters, slc_use *uses, uint32_t use_count)
{
    slc_unit *unit = slc_profile_draft_unit(&m->draft, name, parameters, m->block_bytes, uses, use_count);
    unit->dtype = m->options->precision;
    return unit;
}

/* Adds the embedding without the look-up, then the rows that the look-up touches. */
static void split_embedding(maker *m, slc_use *look_up, slc_use *head)
{
    uint64_t d = m->shape->channels;
    uint32_t u = m->draft.job.unit_count;
    slc_unit *table = add_unit(m, TABLE, VOCABULARY * d, head, 1), *rows = add_unit(m, "rows of " TABLE, 0, look_up, 1);
    table->role = SLC_UNIT_SPLIT;
    table->partner = u + 1;
    rows->role = SLC_UNIT_ROWS;
    rows->partner = u;
    rows->row_elements = d;
    rows->row_count = VOCABULARY;
    rows->most_rows = m->rows < VOCABULARY ? m->rows : VOCABULARY;
    slc_profile_unit_lengths(0, 0, m->options->world, rows);
}

/* A look-up needs no values in its backward. */
static void add_units(maker *m)
{
    uint64_t d = m->shape->channels;
    uint32_t last = m->shape->blocks + 1;
    slc_use *tied = &m->draft.uses[last + 1];
    for (uint32_t l = 0; l <= last; l++) m->draft.uses[l] = (slc_use){l, l > 0};
    tied[0] = (slc_use){0, false};
    tied[1] = (slc_use){last, true};
    add_unit(m, "embed", m->shape->context * d, &m->draft.uses[0], 1);
    if (m->options->tied == SLUICE_TIED_SPLIT)
        split_embedding(m, &tied[0], &tied[1]);
    else
        add_unit(m, TABLE, VOCABULARY * d, tied, 2);
    for (uint32_t l = 1; l < last; l++) add_unit(m, m->draft.names[l], 12 * d * d + 13 * d, &m->draft.uses[l], 1);
    add_unit(m, "head", 2 * d, &m->draft.uses[last], 1);
}

static void add_activation(maker *m, const char *name, uint64_t bytes, uint32_t first, uint32_t last,
                           uint32_t last_forward, bool recomputable)
{
    slc_profile_draft_activation(&m->draft,
                                 (slc_activation_life){name, bytes, first, last, last_forward, recomputable});
}

static void add_activations(maker *m)
{
    const slc_job *job = &m->draft.job;
    uint32_t head = m->shape->blocks + 1, embed_back = slc_backward_slot(job, 0),
             head_back = slc_backward_slot(job, head);
    add_activation(m, "tokens", 4 * m->rows, 0, embed_back, 0, false);
    for (uint32_t l = 0; l < head; l++) { /* the stream that the next layer takes */
        uint32_t next_back = slc_backward_slot(job, l + 1);
        add_activation(m, "x", m->stream, l, next_back, l + 1, false);
        if (!l) continue;
        char *kept = m->draft.names[head + 1 + l];
        snprintf(kept, SLC_DRAFT_NAME_BYTES, "h.%u.kept", l - 1);
        uint64_t bytes = NUMBERS_KEPT * m->stream + 4 * m->rows * m->shape->heads;
        add_activation(m, kept, bytes, l, slc_backward_slot(job, l), l, m->options->can_recompute);
    }
    add_activation(m, "dstream", m->stream, head_back, embed_back, 0, false);
}

static void add_workspace(maker *m, const char *name, uint64_t bytes, uint32_t layer)
{
    m->draft.job.workspaces[m->draft.job.workspace_count++] =
        (slc_workspace_life){name, bytes, slc_forward_slot(layer)};
    m->draft.job.workspaces[m->draft.job.workspace_count++] =
        (slc_workspace_life){name, bytes, slc_backward_slot(&m->draft.job, layer)};
}

static void add_workspaces(maker *m)
{
    uint32_t head = m->shape->blocks + 1;
    uint64_t chunk = m->rows < LOGITS_ROWS ? m->rows : LOGITS_ROWS;
    for (uint32_t l = 1; l < head; l++) add_workspace(m, "wide", 4 * m->stream, l);
    add_workspace(m, "logits", 4 * chunk * VOCABULARY, head);
}

/* A block has two norms, and the four products of attention and of the MLP with their biases. */
static sluice_status set_tensors(const maker *m, slc_profile *profile)
{
    uint64_t d = m->shape->channels;
    const uint64_t of_block[] = {d, d, 3 * d * d, 3 * d, d * d, d, d, d, 4 * d * d, 4 * d, 4 * d * d, d};
    uint32_t head = profile->job.unit_count - 1;
    sluice_status status = slc_profile_set_tensors(profile, head, of_block, 2);
    for (uint32_t u = head - m->shape->blocks; !status && u < head; u++)
        status = slc_profile_set_tensors(profile, u, of_block, sizeof of_block / sizeof *of_block);
    return status;
}

/* ---- All together ---- */

static sluice_status make_profile(maker *m, slc_profile **out)
{
    const slc_made_options *o = m->options;
    sluice_status status = slc_profile_draft_init(&m->draft, m->shape->blocks + 2);
    if (status) return status;
    slc_job *job = &m->draft.job;
    job->world = o->world;
    job->micro_batches = o->micro_batches ? o->micro_batches : 1;
    job->states = 2;
    job->wire = o->wire;
    m->context = o->context ? o->context : m->shape->context;
    m->rows = o->batch * m->context;
    m->stream = sluice_dtype_bytes(m->options->precision) * m->rows * m->shape->channels;
    set_link(m);
    add_layers(m);
    add_units(m);
    add_activations(m);
    add_workspaces(m);

    char source[256];
    if (o->cluster)
        snprintf(source, sizeof source, "made: %s, %u sequences of %llu tokens", o->cluster, o->batch,
                 (unsigned long long)m->context);
    else
        snprintf(source, sizeof source, "made: %g FLOP/s at %g, %g bytes a second, %u sequences of %llu tokens",
                 o->device_flops, o->efficiency, o->bytes_per_s, o->batch, (unsigned long long)m->context);
    status = slc_profile_draft_finish(&m->draft, m->shape->name, source, out);
    if (!status) status = set_tensors(m, *out);
    if (status) return status;
    /* A block is cut in elements, as many as fp32 has in its bytes. */
    (*out)->scratch_in_flight = BLOCKS_IN_FLIGHT * m->block_bytes / sluice_dtype_bytes(SLUICE_FP32) *
                                sluice_dtype_bytes(slc_gradient_dtype(job, job->units));
    return slc_profile_set_world(*out, o->world);
}

sluice_status slc_made_profile(const slc_made_options *options, slc_profile **out)
{
    for (size_t i = 0; i < SHAPES; i++) {
        if (!options->model || strcmp(options->model, shapes[i].name)) continue;
        sluice_status status = check_options(options, &shapes[i]);
        if (status) return status;
        maker m = {.options = options, .shape = &shapes[i]};
        status = make_profile(&m, out);
        slc_profile_draft_fini(&m.draft);
        return status;
    }
    return no_such("model", options->model, slc_made_model_name);
}
