#include "tests/support/sched/two_lanes.h"

#include "tests/support/sched/lanes_memory.h"
#include "tests/support/sched/lanes_touch.h"

#include <stdio.h>
#include <string.h>

static int lanes_lane(const slc_item *item)
{
    return item->kind == SLC_ITEM_SLOT || item->on_compute ? COMPUTE : COMMUNICATION;
}

/* The rows of a step's first look-up are told by the caller, when the slots of the step before are over. */
static bool lanes_asks_caller(const two_lanes *t, const slc_item *item)
{
    return item->kind == SLC_ITEM_GATHER_WINDOW && !item->micro_batch && !t->evaluate &&
           t->job->units[item->unit].role == SLC_UNIT_ROWS;
}

static bool lanes_may_start(const two_lanes *t, lanes_place place)
{
    const slc_item *i = &t->program->items[place.item];
    if (place.pass == t->passes && t->over[COMPUTE] < t->before_drain) return false;
    if (lanes_asks_caller(t, i) && place.pass && t->over[COMPUTE] < t->slots_end[place.pass - 1]) return false;
    for (uint32_t a = 0; a < i->after_count; a++) {
        if (i->after[a].previous && !place.pass) continue;
        int lane = lanes_lane(&t->program->items[i->after[a].item]);
        if (t->over[lane] < t->place[place.pass - i->after[a].previous][i->after[a].item]) return false;
    }
    return true;
}

typedef struct {
    uint32_t weight[4]; /* of starting on the compute lane, starting an operation, ending either */
    uint32_t depth;     /* operations that may be under way */
} lanes_speed;

static lanes_speed lanes_draw_speed(test_dice *dice)
{
    static const uint32_t weights[] = {1, 8, 64};
    lanes_speed speed = {.depth = 1 + test_below(dice, 6)};
    for (int i = 0; i < 4; i++) speed.weight[i] = weights[test_below(dice, 3)];
    return speed;
}

static void lanes_act(two_lanes *t, int action)
{
    int lane = action % 2;
    bool end = action >= 2;
    uint32_t *count = end ? &t->over[lane] : &t->begun[lane];
    lanes_place place = t->lane[lane][*count];
    touch x = {t, place.item, place.pass - t->program->items[place.item].late, end};
    if (!end) lanes_claim_all(t, place);
    touch_item(&x);
    if (end) lanes_release(t, place);
    (*count)++;
}

static bool lanes_step_once(two_lanes *t, const lanes_speed *speed)
{
    bool can[4];
    for (int lane = 0; lane < LANES; lane++) {
        uint32_t open = t->begun[lane] - t->over[lane], depth = lane == COMPUTE ? 1 : speed->depth;
        can[lane] =
            open < depth && t->begun[lane] < t->length[lane] && lanes_may_start(t, t->lane[lane][t->begun[lane]]);
        can[lane + 2] = open > 0;
    }
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++) sum += can[i] ? speed->weight[i] : 0;
    if (!sum) return false;
    uint32_t draw = test_below(&t->dice, sum);
    for (int i = 0; i < 4; i++) {
        if (!can[i]) continue;
        if (draw < speed->weight[i]) {
            lanes_act(t, i);
            return true;
        }
        draw -= speed->weight[i];
    }
    return false;
}

/* Lists what each lane runs: pass 0 has no previous step, pass `passes` is the drain. */
static void lanes_line_up(two_lanes *t)
{
    for (int lane = 0; lane < LANES; lane++) t->length[lane] = t->begun[lane] = t->over[lane] = 0;
    for (uint32_t pass = 0; pass <= t->passes; pass++) {
        t->before_drain = t->length[COMPUTE];
        for (uint32_t i = 0; i < t->program->item_count; i++) {
            const slc_item *item = &t->program->items[i];
            int lane = lanes_lane(item);
            t->place[pass][i] = 0;
            if (item->late ? !pass : pass == t->passes) continue;
            t->lane[lane][t->length[lane]++] = (lanes_place){i, pass};
            t->place[pass][i] = t->length[lane];
            if (item->kind == SLC_ITEM_SLOT) t->slots_end[pass] = t->length[lane];
        }
    }
}

/* Runs a program `passes` times without a pause, then drains it. */
static void lanes_run(two_lanes *t, bool evaluate, uint32_t passes)
{
    t->program = evaluate ? &t->plan->evaluate : &t->plan->train;
    t->evaluate = evaluate;
    t->passes = passes;
    t->active_count = 0;
    if (t->program->item_count > TEST_ITEMS || t->program->claim_count > TEST_CLAIMS) {
        snprintf(t->error, sizeof t->error, "too large for this test");
        return;
    }
    lanes_line_up(t);
    lanes_speed speed = lanes_draw_speed(&t->dice);
    while (!t->error[0] && lanes_step_once(t, &speed)) continue;
    for (int lane = 0; !t->error[0] && lane < LANES; lane++)
        if (t->over[lane] < t->length[lane]) {
            lanes_place at = t->lane[lane][t->over[lane]];
            lanes_fail(t, at.item, "can never go on");
        }
    if (!t->error[0] && t->active_count) snprintf(t->error, sizeof t->error, "memory is held after a drain");
    if (!evaluate) t->base += passes;
}

static void lanes_check_end(two_lanes *t)
{
    for (uint32_t u = 0; !t->error[0] && u < t->job->unit_count; u++) {
        const slc_unit *unit = &t->job->units[u];
        if (unit->role == SLC_UNIT_ROWS) continue;
        bool shard = t->plan->strategies[u] == SLC_FSDP;
        uint32_t value = lanes_buffer(t, shard ? SLC_BUFFER_VALUE_SHARD : SLC_BUFFER_VALUE, u, 0);
        for (uint64_t b = 0; b < slc_unit_blocks(unit); b++)
            if (t->tag[value][b] != (unit->trainable ? (int64_t)t->base : 0))
                snprintf(t->error, sizeof t->error, "unit %s, block %u: not updated", unit->name, (unsigned)b);
    }
}

static bool lanes_starts_at_zero(slc_buffer_kind kind)
{
    return kind == SLC_BUFFER_VALUE || kind == SLC_BUFFER_VALUE_SHARD || kind == SLC_BUFFER_STATE ||
           kind == SLC_BUFFER_WORKER_ERROR || kind == SLC_BUFFER_SERVER_ERROR;
}

void two_lanes_run(two_lanes *t, const slc_job *job, const slc_plan *plan, uint64_t seed)
{
    two_lanes_run_some(t, job, plan, NULL, 1, seed);
}

void two_lanes_run_some(two_lanes *t, const slc_job *job, const slc_plan *plan, const bool *left_out, uint32_t steps,
                        uint64_t seed)
{
    t->job = job;
    t->plan = plan;
    t->left_out = left_out;
    t->left_out_steps = steps;
    t->dice = (test_dice){.seed = seed};
    t->base = t->agreed = t->peak = 0;
    t->error[0] = 0;
    memset(t->own, 0, sizeof t->own);
    memset(t->reduced, 0, sizeof t->reduced);
    memset(t->told, 0, sizeof t->told);
    lanes_find_buffers(t);
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        for (int k = 0; k < TEST_BLOCKS; k++) t->tag[b][k] = lanes_starts_at_zero(plan->buffers[b].kind) ? 0 : GARBAGE;
    for (uint32_t s = 0; s < plan->static_count; s++) {
        uint64_t end = plan->buffers[plan->statics[s].buffer].offset + plan->statics[s].end_byte;
        if (end > t->peak) t->peak = end;
    }
    static const bool evaluate[] = {false, true, false, false};
    for (int r = 0; r < 4 && !t->error[0]; r++) lanes_run(t, evaluate[r], 1 + test_below(&t->dice, TEST_PASSES - 1));
    lanes_check_end(t);
}
