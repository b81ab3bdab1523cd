#include "tests/support/plan/random_job.h"

#include "lib/base/numbers/random.h"
#include "lib/plan/exchange_sizes.h"
#include "tests/support/seed.h"

#include <stdio.h>
#include <string.h>

uint32_t test_below(test_dice *dice, uint32_t limit)
{
    return (uint32_t)slc_random_below(test_seed(dice->seed), 1, dice->drawn++, limit);
}

/* Types are drawn apart from everything else, so that a seed still means the job that it always meant. */
static sluice_dtype test_dtype(const test_dice *dice, uint64_t which)
{
    return slc_random_below(test_seed(dice->seed), 2, which, 2) ? SLUICE_BF16 : SLUICE_FP32;
}

uint32_t test_beside(const test_dice *dice, uint64_t which, uint32_t limit)
{
    return (uint32_t)slc_random_below(test_seed(dice->seed), 3, which, limit);
}

static void test_unit_draw(test_job *t, test_dice *dice, const char *name, uint32_t uses)
{
    uint32_t u = t->job.unit_count++, grain = 16 * t->job.world, layer = 0;
    t->units[u] = (slc_unit){.name = name,
                             .elements = (uint64_t)grain * (1 + test_below(dice, TEST_BLOCKS)),
                             .block_elements = (uint64_t)grain * (1 + test_below(dice, 12)),
                             .dtype = test_dtype(dice, u + 1),
                             .trainable = test_below(dice, 5) > 0,
                             .uses = t->uses[u],
                             .use_count = uses};
    for (uint32_t n = 0; n < uses; n++) {
        layer += test_below(dice, t->job.layer_count - layer - (uses - n - 1));
        t->uses[u][n] = (slc_use){layer++, test_below(dice, 4) > 0};
    }
}

/* Turns the first use of the unit drawn last into a look-up, with rows of any length and some of them at a time. */
static void test_split_draw(test_job *t, const test_dice *dice)
{
    uint32_t u = t->job.unit_count - 1, rows = t->job.unit_count, grain = 16 * t->job.world;
    slc_unit *split = &t->units[u], *table = &t->units[rows];
    if (split->use_count < 2 || !test_beside(dice, 10 + 4 * u, 2)) return;
    char *name = t->row_names[rows];
    snprintf(name, sizeof t->row_names[0], "rows of %s", split->name);
    *table = *split;
    table->name = name;
    table->role = SLC_UNIT_ROWS;
    table->partner = u;
    table->uses = t->uses[rows];
    table->uses[0] = split->uses[0];
    table->use_count = 1;
    table->row_elements = 1 + test_beside(dice, 11 + 4 * u, 16);
    table->row_count = split->elements / table->row_elements;
    table->most_rows = 1 + test_beside(dice, 12 + 4 * u, (uint32_t)table->row_count);
    table->elements = (table->most_rows * table->row_elements + grain - 1) / grain * grain;
    table->block_elements = table->elements;
    split->role = SLC_UNIT_SPLIT;
    split->partner = rows;
    split->uses++;
    split->use_count--;
    t->job.unit_count++;
}

static void test_activations_draw(test_job *t, test_dice *dice, uint32_t layer)
{
    uint32_t layers = t->job.layer_count;
    for (uint32_t n = test_below(dice, 6); n > 0; n--) {
        bool forward = test_below(dice, 4) > 0;
        uint32_t first = forward ? layer : slc_backward_slot(&t->job, layer);
        uint32_t reach = test_below(dice, 2) ? 2 * layers - first : first + 2 <= 2 * layers ? 2 : 1;
        slc_activation_life *life = &t->activations[t->job.activation_count++];
        *life = (slc_activation_life){.name = "x",
                                      .bytes = 4 * (1 + test_below(dice, 4000)),
                                      .first_slot = first,
                                      .last_slot = first + test_below(dice, reach),
                                      .last_forward_slot = forward ? layer + test_below(dice, layers - layer) : 0};
        if (!forward || !t->can_recompute[layer] || test_below(dice, 3) == 0) continue;
        life->recomputable = true;
        life->last_slot = slc_backward_slot(&t->job, layer);
        life->last_forward_slot = layer;
    }
}

/* Makes two of three jobs that may be compressed so. A unit is one tensor, as in a profile that knows no tensors. */
static void test_compressed_draw(test_job *t, const test_dice *dice)
{
    slc_job *job = &t->job;
    job->compressed = job->world > 1 && !job->each && test_beside(dice, 0, 3);
    job->refreshes = job->compressed && test_beside(dice, 1, 2);
    job->norms_barrier = job->compressed && job->barrier && test_beside(dice, 2, 2);
    job->local_arrays = job->compressed ? test_beside(dice, 3, 3) : 0;
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (t->units[u].trainable && t->units[u].role == SLC_UNIT_WHOLE)
            t->units[u].exchange = slc_exchange_of(&t->units[u].elements, 1, job->world, job->scratch_bytes > 0);
}

void test_recomputable_uses(test_job *t)
{
    for (uint32_t u = 0; u < t->job.unit_count; u++)
        for (uint32_t n = 0; n < t->units[u].use_count; n++)
            t->units[u].uses[n].backward_value |= t->can_recompute[t->units[u].uses[n].layer];
}

void test_job_draw(test_job *t, test_dice *dice)
{
    memset(t, 0, sizeof *t);
    slc_job *job = &t->job;
    *job = (slc_job){.world = 1 + test_below(dice, 4),
                     .micro_batches = 1 + test_below(dice, 3),
                     .each = test_below(dice, 2),
                     .wire = test_dtype(dice, 0),
                     .barrier = test_below(dice, 2),
                     .states = test_below(dice, 3),
                     .norm_words = test_below(dice, 2) * test_below(dice, 500),
                     .layer_count = 1 + test_below(dice, TEST_LAYERS),
                     .layers = t->layers,
                     .can_recompute = t->can_recompute,
                     .units = t->units,
                     .activations = t->activations,
                     .workspaces = t->workspaces,
                     .scratch_bytes = test_below(dice, 2) * 5000,
                     .reserved_bytes = test_below(dice, 1000)};
    for (uint32_t l = 0; l < job->layer_count; l++) {
        snprintf(t->names[l], sizeof t->names[l], "h.%u", l);
        t->layers[l] = t->names[l];
        t->can_recompute[l] = test_below(dice, 3) == 0;
        if (test_below(dice, 8)) {
            test_unit_draw(t, dice, t->names[l], 1);
            t->uses[job->unit_count - 1][0].layer = l;
        }
        test_activations_draw(t, dice, l);
        for (uint32_t n = test_below(dice, 3); n > 0; n--) {
            slc_workspace_life *life = &t->workspaces[job->workspace_count++];
            *life = (slc_workspace_life){"w", 1 + test_below(dice, 9000), 0};
            life->slot = life->bytes % 2 ? l : slc_backward_slot(job, l);
        }
    }
    for (uint32_t n = test_below(dice, 4); n > 0; n--) {
        char *name = t->names[TEST_LAYERS + n];
        snprintf(name, sizeof t->names[0], "tied.%u", n);
        test_unit_draw(t, dice, name, 1 + test_below(dice, job->layer_count < 3 ? job->layer_count : 3));
        test_split_draw(t, dice);
    }
    test_recomputable_uses(t);
    test_compressed_draw(t, dice);
}

void test_strategies_all(const slc_job *job, slc_strategy asked, slc_strategy *out)
{
    for (uint32_t u = 0; u < job->unit_count; u++) out[u] = slc_unit_strategy(job, &job->units[u], asked);
}

void test_strategies_draw(const slc_job *job, test_dice *dice, slc_strategy *out)
{
    uint32_t strategies = (uint32_t)slc_job_strategies(job), all = test_below(dice, strategies + 2);
    for (uint32_t u = 0; u < job->unit_count; u++)
        out[u] = slc_unit_strategy(job, &job->units[u],
                                   (slc_strategy)(all < strategies ? all : test_below(dice, strategies)));
}

void test_recompute_draw(const slc_job *job, test_dice *dice, bool *out)
{
    for (uint32_t l = 0; l < job->layer_count; l++) out[l] = job->can_recompute[l] && test_below(dice, 2);
}
