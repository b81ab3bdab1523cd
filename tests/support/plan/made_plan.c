#include "tests/support/plan/made_plan.h"

#include "lib/plan/strategy_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static slc_use made_in_look_up[] = {{0, true}}, made_in_head[] = {{1, true}};
static const char *made_layers[MADE_LAYERS] = {"embed", "head"};

void made_init(made *m, slc_strategy table, uint32_t micro_batches, bool each, bool backward)
{
    *m = (made){.strategies = {table, SLC_FSDP, SLC_DP}};
    made_in_look_up[0].backward_value = backward;
    m->units[TABLE] = (slc_unit){.name = "table",
                                 .elements = 480,
                                 .block_elements = 160,
                                 .trainable = true,
                                 .uses = made_in_head,
                                 .use_count = 1,
                                 .role = SLC_UNIT_SPLIT,
                                 .partner = ROWS};
    m->units[ROWS] = (slc_unit){.name = "table.rows",
                                .elements = 128,
                                .block_elements = 128,
                                .trainable = true,
                                .uses = made_in_look_up,
                                .use_count = 1,
                                .role = SLC_UNIT_ROWS,
                                .partner = TABLE,
                                .row_elements = 23,
                                .row_count = 20,
                                .most_rows = 5};
    m->units[LAYER] = (slc_unit){
        .name = "h", .elements = 96, .block_elements = 96, .trainable = true, .uses = made_in_head, .use_count = 1};
    m->job = (slc_job){.world = 2,
                       .micro_batches = micro_batches,
                       .each = each,
                       .states = 2,
                       .layer_count = MADE_LAYERS,
                       .layers = made_layers,
                       .units = m->units,
                       .unit_count = UNITS};
}

/* ---- The items of a step, in an order that holds every rule ---- */

static void made_slot(made *m, uint32_t micro_batch, uint32_t slot)
{
    m->items[m->count++] =
        (slc_item){.kind = SLC_ITEM_SLOT, .micro_batch = micro_batch, .slot = slot, .unit = SLC_NONE};
}

static void made_runs(made *m, slc_item_kind kind, uint32_t micro_batch, uint32_t u, uint32_t window)
{
    uint64_t blocks = slc_unit_blocks(&m->units[u]);
    if (kind == SLC_ITEM_KINDS) return;
    for (uint64_t b = 0; b < blocks; b += 2) /* the last run of three blocks is shorter */
        m->items[m->count++] = (slc_item){.kind = kind,
                                          .micro_batch = micro_batch,
                                          .unit = u,
                                          .index = window,
                                          .first_block = b,
                                          .block_count = blocks - b < 2 ? blocks - b : 2};
}

static void made_windows(made *m, uint32_t micro_batch, uint32_t slot, bool train)
{
    slc_window window;
    for (uint32_t u = 0; u < UNITS; u++)
        for (uint32_t w = 0; m->strategies[u] == SLC_FSDP && slc_unit_window(&m->job, &m->units[u], train, w, &window);
             w++)
            if (window.first_slot == slot) made_runs(m, SLC_ITEM_GATHER_WINDOW, micro_batch, u, w);
}

static void made_reductions(made *m, uint32_t micro_batch, uint32_t slot)
{
    for (uint32_t u = 0; u < UNITS; u++) {
        uint32_t first, last;
        slc_unit_gradient_slots(&m->job, &m->units[u], &first, &last);
        if (last == slot && (m->job.each || micro_batch + 1 == m->job.micro_batches))
            made_runs(m, slc_operations_of(&m->job, &m->units[u], m->strategies[u]).reduce, micro_batch, u, 0);
    }
}

void made_step(made *m)
{
    uint32_t last = m->job.micro_batches - 1;
    for (uint32_t n = 0; n <= last; n++)
        for (uint32_t s = 0; s < 2 * MADE_LAYERS; s++) {
            made_windows(m, n, s, true);
            made_slot(m, n, s);
            if (s >= MADE_LAYERS) made_reductions(m, n, s);
        }
    m->items[m->count++] = (slc_item){.kind = SLC_ITEM_AGREE, .micro_batch = last, .unit = SLC_NONE};
    for (uint32_t u = 0; u < UNITS; u++) {
        slc_unit_operations of = slc_operations_of(&m->job, &m->units[u], m->strategies[u]);
        made_runs(m, of.gather_gradient, last, u, 0);
        made_runs(m, of.update, last, u, 0);
        made_runs(m, of.gather_value, last, u, 0);
    }
}

/* ---- From items to a plan ---- */

uint32_t made_find(const made *m, slc_item_kind kind, uint32_t micro_batch, uint32_t unit, uint64_t block)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const slc_item *item = &m->items[i];
        if (item->kind != kind || item->micro_batch != micro_batch) continue;
        if (kind == SLC_ITEM_SLOT
                ? item->slot == unit
                : item->unit == unit && item->first_block <= block && block < item->first_block + item->block_count)
            return i;
    }
    fail_msg("no such item");
    return SLC_NONE;
}

static void made_buffer(slc_plan *plan, slc_buffer_kind kind, uint32_t unit, uint32_t index, uint64_t bytes,
                        bool resident)
{
    uint32_t number = plan->buffer_count++;
    plan->buffers[number] = (slc_buffer){kind, unit, index, bytes, plan->arena_bytes};
    plan->arena_bytes += bytes;
    if (resident) plan->statics[plan->static_count++] = (slc_claim){.buffer = number, .end_byte = bytes};
}

static void made_buffers(made *m)
{
    enum { MOST = 128 };
    slc_plan *plan = m->plan;
    slc_buffer_rule rows[SLC_BUFFER_RULES_MAX];
    plan->buffers = calloc(MOST, sizeof *plan->buffers);
    plan->statics = calloc(MOST, sizeof *plan->statics);
    for (uint32_t u = 0; u < UNITS; u++)
        for (uint32_t r = slc_buffer_rules(&m->job, &m->units[u], m->strategies[u], rows); r-- > 0;) {
            uint64_t bytes = slc_buffer_bytes(&m->job, &m->units[u], &rows[r]);
            if (rows[r].life != SLC_LIFE_WINDOW)
                made_buffer(plan, rows[r].kind, u, rows[r].index, bytes, rows[r].life == SLC_LIFE_RESIDENT);
            for (uint32_t n = 0; rows[r].life == SLC_LIFE_WINDOW && n < slc_gathered_buffers(&m->job, &m->units[u]);
                 n++)
                made_buffer(plan, rows[r].kind, u, n, bytes, false);
        }
    made_buffer(plan, SLC_BUFFER_AGREEMENT, SLC_NONE, 0, 8 * slc_agreement_words(&m->job), true);
    made_buffer(plan, SLC_BUFFER_STAGING, SLC_NONE, 0, slc_reading_bytes(&m->job), false);
}

static void made_claim(const made *m, slc_program *program, slc_buffer_kind kind, const slc_item *run, uint32_t from,
                       uint32_t to)
{
    const slc_unit *unit = &m->units[run->unit];
    uint32_t index = kind == SLC_BUFFER_GATHERED ? slc_gathered_number(&m->job, unit, run->micro_batch, run->index) : 0;
    bool shard = kind == SLC_BUFFER_REDUCED && !slc_operations_of(&m->job, unit, m->strategies[run->unit]).whole_sum;
    uint64_t end = run->first_block + run->block_count;
    slc_claim claim = {.buffer = slc_plan_buffer(m->plan, kind, run->unit, index),
                       .first_byte = slc_block_byte(&m->job, unit, kind, shard, run->first_block),
                       .end_byte = slc_block_byte(&m->job, unit, kind, shard, end),
                       .from = from,
                       .to = to};
    uint32_t at = program->claim_count++;
    for (; at && program->claims[at - 1].from > from; at--) program->claims[at] = program->claims[at - 1];
    program->claims[at] = claim;
}

/* Claims follow the runs that write: from there, or for a gradient from its first slot, to the last reader. */
static void made_claims(const made *m, slc_program *program, bool train)
{
    uint32_t last = m->job.micro_batches - 1;
    for (uint32_t i = 0; i < m->count; i++) {
        const slc_item *item = &m->items[i];
        uint32_t n = item->micro_batch, first, grown;
        slc_window window;
        if (item->kind == SLC_ITEM_GATHER_WINDOW) {
            assert_true(slc_unit_window(&m->job, &m->units[item->unit], train, item->index, &window));
            made_claim(m, program, SLC_BUFFER_GATHERED, item, i, made_find(m, SLC_ITEM_SLOT, n, window.last_slot, 0));
        }
        if (!slc_is_reduction(item->kind)) continue;
        slc_strategy strategy = m->strategies[item->unit];
        slc_unit_operations of = slc_operations_of(&m->job, &m->units[item->unit], strategy);
        slc_unit_gradient_slots(&m->job, &m->units[item->unit], &first, &grown);
        if (slc_gradient_is_transient(strategy))
            made_claim(m, program, SLC_BUFFER_GRADIENT, item,
                       made_find(m, SLC_ITEM_SLOT, m->job.each ? n : 0, first, 0),
                       of.moves_sum ? i : made_find(m, SLC_ITEM_UPDATE, last, item->unit, item->first_block));
        if (item->unit != ROWS && of.moves_sum && n == (m->job.each ? 0 : last))
            made_claim(m, program, SLC_BUFFER_REDUCED, item, i,
                       made_find(m, strategy == SLC_DP && !of.whole_sum ? SLC_ITEM_GATHER_GRADIENT : SLC_ITEM_UPDATE,
                                 last, item->unit, item->first_block));
    }
}

/* Each item waits for the last late item and the last other item before it, in its pass and in the previous one. */
static void made_waits(const made *m, slc_program *program)
{
    uint32_t last[2] = {SLC_NONE, SLC_NONE}, before[2] = {SLC_NONE, SLC_NONE};
    for (uint32_t i = 0; i < m->count; i++) last[m->items[i].late] = i;
    for (uint32_t i = 0; i < m->count; i++) {
        slc_item *item = &program->items[i];
        item->after = calloc(4, sizeof *item->after);
        for (int late = 0; late < 2; late++) {
            if (before[late] != SLC_NONE) item->after[item->after_count++] = (slc_after){before[late], false};
            if (last[late] != SLC_NONE) item->after[item->after_count++] = (slc_after){last[late], true};
        }
        before[item->late] = i;
    }
}

static void made_program(const made *m, slc_program *program, bool train)
{
    program->items = calloc(MADE_ITEMS, sizeof *program->items);
    program->claims = calloc(2 * MADE_ITEMS, sizeof *program->claims);
    memcpy(program->items, m->items, sizeof m->items);
    program->item_count = m->count;
    made_waits(m, program);
    made_claims(m, program, train);
}

void made_plan(made *m)
{
    made evaluation = *m;
    m->plan = calloc(1, sizeof *m->plan);
    m->plan->unit_count = UNITS;
    m->plan->strategies = malloc(sizeof m->strategies);
    memcpy(m->plan->strategies, m->strategies, sizeof m->strategies);
    m->plan->schedule = "made";
    m->plan->layer_count = MADE_LAYERS;
    m->plan->recompute = calloc(MADE_LAYERS, sizeof *m->plan->recompute);
    made_buffers(m);
    made_program(m, &m->plan->train, true);
    evaluation.plan = m->plan;
    evaluation.count = 0;
    for (uint32_t s = 0; s < MADE_LAYERS; s++) {
        made_windows(&evaluation, 0, s, false);
        made_slot(&evaluation, 0, s);
    }
    made_program(&evaluation, &m->plan->evaluate, false);
}
