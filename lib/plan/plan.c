/* Plans: names, look-up, fingerprint, destruction. lib/plan/json/plan_json_test.c covers this file. */
#include "lib/plan/plan.h"

#include "lib/base/hash/fnv.h"

#include <stdlib.h>

const char *slc_item_kind_name(slc_item_kind kind)
{
    static const char *const names[SLC_ITEM_KINDS] = {
        "slot",          "reduce_scatter", "all_reduce", "gather_gradient", "agree", "update", "gather_value",
        "gather_window", "inspect",        "compress",   "exchange",        "send",  "receive"};
    return (unsigned)kind < SLC_ITEM_KINDS ? names[kind] : "unknown";
}

const char *slc_buffer_kind_name(slc_buffer_kind kind)
{
    static const char *const names[SLC_BUFFER_KINDS] = {
        "value",           "value shard",  "master",       "gathered value",        "gradient",  "reduced gradient",
        "optimizer state", "worker error", "server error", "local array",           "packets",   "results",
        "row lists",       "activation",   "workspace",    "communication scratch", "agreement", "staging"};
    return (unsigned)kind < SLC_BUFFER_KINDS ? names[kind] : "unknown";
}

static void program_fini(slc_program *program)
{
    for (uint32_t i = 0; i < program->item_count; i++) free(program->items[i].after);
    free(program->items);
    free(program->claims);
}

void slc_plan_destroy(slc_plan *plan)
{
    if (!plan) return;
    program_fini(&plan->train);
    program_fini(&plan->evaluate);
    free(plan->owned_schedule);
    free(plan->strategies);
    free(plan->recompute);
    free(plan->buffers);
    free(plan->statics);
    free(plan);
}

uint32_t slc_plan_buffer(const slc_plan *plan, slc_buffer_kind kind, uint32_t unit, uint32_t index)
{
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const slc_buffer *buffer = &plan->buffers[i];
        if (buffer->kind == kind && buffer->unit == unit && buffer->index == index) return i;
    }
    return SLC_NONE;
}

static void mix(uint64_t *hash, uint64_t value)
{
    *hash = slc_fnv(*hash, &value, sizeof value);
}

static void mix_program(uint64_t *hash, const slc_program *program)
{
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        mix(hash, (uint64_t)item->kind << 2 | (uint64_t)item->on_compute << 1 | item->late);
        mix(hash, (uint64_t)item->micro_batch << 32 | item->slot);
        mix(hash, (uint64_t)item->unit << 32 | item->index);
        mix(hash, item->first_block);
        mix(hash, item->block_count);
        for (uint32_t a = 0; a < item->after_count; a++)
            mix(hash, (uint64_t)item->after[a].item << 1 | item->after[a].previous);
    }
    for (uint32_t c = 0; c < program->claim_count; c++) {
        const slc_claim *claim = &program->claims[c];
        mix(hash, claim->buffer);
        mix(hash, claim->first_byte);
        mix(hash, claim->end_byte);
        mix(hash, (uint64_t)claim->from << 32 | claim->to);
    }
}

uint64_t slc_plan_fingerprint(const slc_plan *plan)
{
    uint64_t hash = SLC_FNV_START;
    for (uint32_t u = 0; u < plan->unit_count; u++) mix(&hash, plan->strategies[u]);
    for (uint32_t l = 0; plan->recompute && l < plan->layer_count; l++) mix(&hash, plan->recompute[l]);
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        mix(&hash, plan->buffers[b].bytes);
        mix(&hash, plan->buffers[b].offset);
    }
    mix_program(&hash, &plan->train);
    mix_program(&hash, &plan->evaluate);
    mix(&hash, plan->arena_bytes);
    return hash;
}
