#include "tests/support/ilp/random_slot_job.h"

#include "lib/base/numbers/random.h"

#include <string.h>

uint32_t slot_below(slot_dice *dice, uint32_t limit)
{
    return (uint32_t)slc_random_below(dice->seed, 11, dice->drawn++, limit);
}

static double slot_between(slot_dice *dice, double low, double high)
{
    return low + (high - low) * slot_below(dice, 1000) / 1000;
}

/* Types are drawn apart from everything else, so that a seed still means the job that it always meant. */
static sluice_dtype slot_dtype(const slot_dice *dice, uint64_t which)
{
    return slc_random_below(dice->seed, 12, which, 2) ? SLUICE_BF16 : SLUICE_FP32;
}

/* Draws the compressed phase, apart from everything else: half of the jobs that may be in one are. */
static void slot_compressed_draw(slot_job *t, const slot_dice *dice)
{
    slc_job *job = &t->job;
    uint64_t draw = slc_random_below(dice->seed, 13, dice->drawn, 1000000);
    job->compressed = !job->each && job->world > 1 && draw % 2;
    if (!job->compressed) return;
    job->norms_barrier = job->barrier && draw / 2 % 2;
    job->refreshes = draw / 4 % 2;
    job->local_arrays = (uint32_t)(draw / 8 % 3);
    for (uint32_t u = 0; u < job->unit_count; u++) {
        slc_unit *unit = &t->units[u];
        uint64_t wire = unit->elements / 8 + 4 * (uint64_t)job->world;
        t->allowed[u] = (1 << SLC_STRATEGIES) - 1;
        if (!unit->trainable) continue;
        unit->exchange = (slc_exchange_sizes){.worker = 4 * unit->elements,
                                              .server = 4 * unit->elements / job->world,
                                              .packets = wire + 64,
                                              .results = wire,
                                              .wire = wire};
    }
    t->times.compress_s_per_element = 1e-11 * (double)(draw / 32 % 4000);
    t->times.apply_s_per_element = 1e-11 * (double)(draw % 1999);
    t->times.average_s_per_element = 1e-12 * (double)(draw % 997);
}

static void slot_unit_draw(slot_job *t, slot_dice *dice, uint32_t first_layer, uint32_t last_layer)
{
    uint32_t u = t->job.unit_count++, grain = 16 * t->job.world;
    t->uses[u][0] = (slc_use){first_layer, slot_below(dice, 8) > 0};
    t->uses[u][1] = (slc_use){last_layer, slot_below(dice, 4) > 0};
    t->units[u] = (slc_unit){.name = "u",
                             .elements = (uint64_t)grain * (1 + slot_below(dice, 400)),
                             .block_elements = (uint64_t)grain * 64,
                             .dtype = slot_dtype(dice, u + 1),
                             .trainable = slot_below(dice, 8) > 0,
                             .uses = t->uses[u],
                             .use_count = first_layer == last_layer ? 1 : 2};
}

static void slot_layer_draw(slot_job *t, slot_dice *dice, uint32_t l)
{
    slc_job *job = &t->job;
    uint32_t backward = slc_backward_slot(job, l);
    t->slot_s[l] = slot_below(dice, 10) ? slot_between(dice, 0.2e-3, 2e-3) : 0;
    t->slot_s[backward] = slot_between(dice, 1, 3) * t->slot_s[l];
    t->recompute_s[l] = t->slot_s[l];
    t->recompute[l] = (uint8_t)slot_below(dice, 3);
    t->can_recompute[l] = true;
    t->names[l] = "layer";
    t->activations[job->activation_count++] = (slc_activation_life){.name = "own",
                                                                    .bytes = 1000 + slot_below(dice, 60000),
                                                                    .first_slot = l,
                                                                    .last_slot = backward,
                                                                    .recomputable = slot_below(dice, 4) > 0};
    uint32_t end = l + 1 + slot_below(dice, 2 * job->layer_count - l - 1);
    t->activations[job->activation_count++] =
        (slc_activation_life){.name = "kept", .bytes = 500 + slot_below(dice, 5000), .first_slot = l, .last_slot = end};
    t->workspaces[job->workspace_count++] = (slc_workspace_life){"w", slot_below(dice, 9000), l};
    t->workspaces[job->workspace_count++] = (slc_workspace_life){"v", slot_below(dice, 9000), backward};
}

/* Draws split units, apart from everything else: in two of three jobs (in one of six with onebit) the last unit is
 * split, into a unit with one or two uses and the rows that an earlier layer, mostly the first, looks up. */
static void slot_split_draw(slot_job *t, const slot_dice *dice)
{
    slc_job *job = &t->job;
    uint64_t draw = slc_random_below(dice->seed, 15, dice->drawn, 1000000);
    uint32_t rows = job->unit_count, split = rows - 1, look_up = draw / 3 % 4 ? 0 : (uint32_t)(draw / 12) % 16;
    slc_unit *of = &t->units[split];
    if (draw % 3 == 0 || (job->compressed && draw % 4) || look_up + 1 >= job->layer_count) return;
    of->uses[0].layer = of->uses[of->use_count - 1].layer;
    of->use_count = 1;
    if (of->uses[0].layer <= look_up) of->uses[0].layer = look_up + 1;
    if (draw / 29 % 4 == 0 && of->uses[0].layer + 1 < job->layer_count) {
        of->uses[1] = (slc_use){job->layer_count - 1, true};
        of->use_count = 2;
    }
    uint64_t length = 1 + draw / 7 % 60, count = of->elements / length, grain = 16 * (uint64_t)job->world;
    if (!count) return;
    uint64_t most = 1 + draw / 11 % count, padded = (most * length + grain - 1) / grain * grain;
    t->uses[rows][0] = (slc_use){look_up, draw / 5 % 4 == 0};
    t->units[rows] = (slc_unit){.name = "rows",
                                .elements = padded,
                                .block_elements = padded,
                                .dtype = of->dtype,
                                .trainable = of->trainable,
                                .uses = t->uses[rows],
                                .use_count = 1,
                                .role = SLC_UNIT_ROWS,
                                .partner = split,
                                .row_elements = length,
                                .row_count = count,
                                .most_rows = most};
    of->role = SLC_UNIT_SPLIT;
    of->partner = rows;
    t->allowed[rows] = t->allowed[split];
    job->unit_count++;
    if (draw / 2 % 2) t->times.update_compute_s_per_element = 1e-11 * (double)(draw % 499);
}

/* Draws the evaluation pass, apart from everything else: in a third of the jobs activations are kept for some layers of
 * an evaluation pass, and those that training may recompute are large, so that evaluation may need more than training.
 */
static void slot_evaluation_draw(slot_job *t, const slot_dice *dice)
{
    slc_job *job = &t->job;
    if (slc_random_below(dice->seed, 16, dice->drawn, 3)) return;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        slc_activation_life *life = &t->activations[a];
        uint64_t draw = slc_random_below(dice->seed, 17, dice->drawn * MOST_ACTIVATIONS + a, 1000000);
        if (life->first_slot >= job->layer_count || draw % 4 == 0) continue;
        life->last_forward_slot = life->first_slot + (uint32_t)(draw / 4 % (job->layer_count - life->first_slot));
        if (life->recomputable) life->bytes *= 1 + draw / 97 % 8;
    }
}

void slot_job_draw(slot_job *t, slot_dice *dice, uint32_t layers, uint32_t units, uint32_t micro_batches)
{
    memset(t, 0, sizeof *t);
    slc_job *job = &t->job;
    *job = (slc_job){.world = 1 + slot_below(dice, 5),
                     .micro_batches = micro_batches,
                     .each = slot_below(dice, 2),
                     .wire = slot_dtype(dice, 0),
                     .barrier = slot_below(dice, 3) == 0,
                     .states = slot_below(dice, 3),
                     .layer_count = layers,
                     .layers = t->names,
                     .can_recompute = t->can_recompute,
                     .units = t->units,
                     .activations = t->activations,
                     .workspaces = t->workspaces,
                     .scratch_bytes = slot_below(dice, 2) * 3000};
    for (uint32_t l = 0; l < layers; l++) slot_layer_draw(t, dice, l);
    for (uint32_t l = 0; l < layers && job->unit_count < units; l++)
        if (slot_below(dice, 8)) slot_unit_draw(t, dice, l, l);
    if (job->unit_count < units && slot_below(dice, 2)) slot_unit_draw(t, dice, 0, layers - 1);
    if (!job->unit_count) slot_unit_draw(t, dice, layers - 1, layers - 1);
    for (uint32_t u = 0; u < job->unit_count; u++) t->allowed[u] = (1 << SLC_EXACT_STRATEGIES) - 1;

    double kappa = slot_below(dice, 2) ? slot_between(dice, 0, 1.2) : 0;
    t->times = (slc_times){.slot_s = t->slot_s,
                           .recompute_s = t->recompute_s,
                           .update_s_per_element = slot_between(dice, 0, 5e-9),
                           .link = {.reduce_scatter = {slot_between(dice, 0, 50e-6), slot_between(dice, 2e7, 2e8)},
                                    .all_gather = {slot_between(dice, 0, 50e-6), slot_between(dice, 2e7, 2e8)},
                                    .kappa = kappa,
                                    .sigma = (kappa > 1 ? kappa : 1) + slot_between(dice, 0, 0.5),
                                    .thread_moves = slot_below(dice, 2),
                                    .operation_s = slot_below(dice, 2) ? 2e-5 : 0}};
    slot_compressed_draw(t, dice);
    slot_split_draw(t, dice);
    slot_evaluation_draw(t, dice);
}
