/* Any text must be read as a plan or refused with a line; whatever is read must be a valid plan that is written and
 * read back the same. Inputs are edits of plans that a scheduler made for one small job. */
#include "lib/plan/exchange_sizes.h"
#include "lib/plan/profile.h"
#include "tests/support/base/splice_fuzz.h"
#include "sched/layout/make_plan.h"

#include <sluice/status.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LAYERS = 3, UNITS = 4, PLANS = 6 };

typedef struct {
    slc_job job;
    const char *layers[LAYERS];
    bool can[LAYERS];
    slc_unit units[UNITS];
    slc_use uses[UNITS];
    slc_activation_life activations[2];
    slc_workspace_life workspaces[1];
} small_job;

static void small_job_init(small_job *s)
{
    *s = (small_job){.layers = {"a", "b", "c"},
                     .can = {true, true, false},
                     .uses = {{2, true}, {0, true}, {1, true}, {2, true}},
                     .activations = {{"x", 64, 1, 4, 1, true}, {"y", 32, 0, 5, 2, false}},
                     .workspaces = {{"w", 128, 1}}};
    s->units[0] = (slc_unit){.name = "tied", .elements = 128, .block_elements = 32, .trainable = true};
    s->units[1] = (slc_unit){.name = "rows of tied", .elements = 32, .block_elements = 32, .trainable = true};
    s->units[2] =
        (slc_unit){.name = "b", .elements = 64, .block_elements = 64, .dtype = SLUICE_BF16, .trainable = true};
    s->units[3] = (slc_unit){.name = "c", .elements = 96, .block_elements = 64};
    for (int u = 0; u < UNITS; u++) {
        s->units[u].uses = &s->uses[u];
        s->units[u].use_count = 1;
    }
    s->units[0].role = SLC_UNIT_SPLIT;
    s->units[0].partner = 1;
    s->units[1].role = SLC_UNIT_ROWS;
    s->units[1].row_elements = 9;
    s->units[1].row_count = 14;
    s->units[1].most_rows = 3;
    s->units[2].exchange = slc_exchange_of(&s->units[2].elements, 1, 2, true);
    s->job = (slc_job){.world = 2,
                       .micro_batches = 2,
                       .states = 2,
                       .compressed = true,
                       .refreshes = true,
                       .local_arrays = 1,
                       .layer_count = LAYERS,
                       .layers = s->layers,
                       .can_recompute = s->can,
                       .units = s->units,
                       .unit_count = UNITS,
                       .activations = s->activations,
                       .activation_count = 2,
                       .workspaces = s->workspaces,
                       .workspace_count = 1,
                       .scratch_bytes = 256};
}

/* Moves updates to the compute lane as long as the plan stays valid. */
static void compute_updates(const slc_job *job, slc_plan *plan)
{
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        slc_item *item = &plan->train.items[i];
        if (item->kind != SLC_ITEM_UPDATE) continue;
        item->on_compute = true;
        if (slc_plan_validate(job, plan)) item->on_compute = false;
    }
}

/* Makes the text of plan `number`: a uniform strategy, or one unit of each. */
static char *make_text(const small_job *s, int number)
{
    slc_strategy strategies[UNITS];
    bool recompute[LAYERS] = {false, number % 2, false};
    for (int u = 0; u < UNITS; u++) {
        slc_strategy asked = (slc_strategy)((number + (number == PLANS - 1) * u) % SLC_STRATEGIES);
        strategies[u] = slc_unit_strategy(&s->job, &s->units[u], asked);
    }
    slc_scheduling in = {.job = &s->job, .strategies = strategies, .recompute = recompute, .limit = UINT64_MAX};
    slc_plan *plan;
    char *text;
    if (slc_plan_make(&in, slc_scheduler_find(number % 2 ? "serial" : "one_ahead"), &plan)) abort();
    compute_updates(&s->job, plan);
    if (slc_plan_to_json(&s->job, plan, NULL, &text)) abort();
    slc_plan_destroy(plan);
    return text;
}

static void check(const slc_job *job, const char *text, size_t length)
{
    slc_plan *plan, *back;
    char *again;
    if (slc_plan_from_json(job, text, length, &plan)) {
        if (!*sluice_last_error()) abort();
        return;
    }
    if (slc_plan_validate(job, plan)) abort();
    if (slc_plan_to_json(job, plan, NULL, &again)) abort();
    if (slc_plan_from_json(job, again, strlen(again), &back)) abort();
    if (slc_plan_fingerprint(plan) != slc_plan_fingerprint(back)) abort();
    free(again);
    slc_plan_destroy(back);
    slc_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static small_job job; /* made once, because making a plan takes longer than reading it */
    static char *texts[PLANS];
    if (!texts[0]) {
        small_job_init(&job);
        for (int n = 0; n < PLANS; n++) texts[n] = fuzz_without_space(make_text(&job, n));
    }
    size_t length;
    char *text = fuzz_splice((const char *const *)texts, PLANS, data, size, &length);
    if (text) check(&job.job, text, length);
    free(text);
    return 0;
}
