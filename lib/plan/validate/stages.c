/* Runs the plans of all stages beside each other without a clock: an item begins when what it waits for has ended, and
 * a message ends when both its ends have begun. Whatever can begin does; if something is left, it can never run.
 * sched/pipeline/stage_job_test.c covers this file. */
#include "lib/plan/stages.h"

#include "lib/base/status.h"
#include "lib/plan/validate/parts.h"

#include <stdio.h>
#include <stdlib.h>

enum { PASSES = 2 };

/* A lane's items in their order. `begun` and `ended` count items, and go on counting from pass to pass. */
typedef struct {
    uint32_t *items; /* of one pass */
    uint32_t count, begun, ended;
} lane;

typedef struct {
    const slc_job *job;
    const slc_program *program;
    lane lanes[SLC_LANES];
    uint32_t *place; /* [items] place in its lane */
} stage;

typedef struct {
    stage *stages;
    uint32_t count;
    uint32_t (*other)[SLC_STAGE_CHANNELS_MAX]; /* [stages] place of each channel at its other end */
} pipeline;

/* ---- Ends ---- */

static sluice_status find_other_end(const pipeline *p, uint32_t s, uint32_t c)
{
    const slc_stage_channel *mine = &p->stages[s].job->channels[c];
    if (mine->stage >= p->count || mine->stage == s)
        return slc_error(SLUICE_ERR_FORMAT, "invalid stages: channel %u of stage %u goes to stage %u", mine->number, s,
                         mine->stage);
    const slc_job *there = p->stages[mine->stage].job;
    uint32_t found = SLC_NONE;
    for (uint32_t d = 0; d < there->channel_count; d++)
        if (there->channels[d].number == mine->number) found = d;
    if (found == SLC_NONE || there->channels[found].receives == mine->receives || there->channels[found].stage != s)
        return slc_error(SLUICE_ERR_FORMAT, "invalid stages: channel %u of stage %u has no other end at stage %u",
                         mine->number, s, mine->stage);
    if (there->channels[found].bytes != mine->bytes || there->micro_batches != p->stages[s].job->micro_batches)
        return slc_error(SLUICE_ERR_FORMAT,
                         "invalid stages: channel %u carries %llu bytes at stage %u, %llu at stage %u", mine->number,
                         (unsigned long long)mine->bytes, s, (unsigned long long)there->channels[found].bytes,
                         mine->stage);
    p->other[s][c] = found;
    return SLUICE_OK;
}

/* ---- Running ---- */

static bool has_ended(const stage *s, uint32_t item, int pass)
{
    const lane *l = &s->lanes[slc_lane_of(&s->program->items[item])];
    return pass < 0 || l->ended > (uint32_t)pass * l->count + s->place[item];
}

/* True if an item runs in the pass: a first pass leaves late items out. */
static bool runs(const slc_item *item, int pass)
{
    return pass > 0 || !item->late;
}

static bool may_begin(const stage *s, const lane *l, bool compute)
{
    const uint32_t item = l->items[l->begun % l->count];
    const int pass = (int)(l->begun / l->count);
    if (compute && l->ended < l->begun) return false;
    if (!runs(&s->program->items[item], pass)) return true;
    for (uint32_t a = 0; a < s->program->items[item].after_count; a++) {
        const slc_after *after = &s->program->items[item].after[a];
        const int of = pass - after->previous;
        if (of >= 0 && runs(&s->program->items[after->item], of) && !has_ended(s, after->item, of)) return false;
    }
    return true;
}

/* True if an item may end. A message ends once it has begun at both ends. */
static bool may_end(const pipeline *p, uint32_t s, uint32_t lane_number)
{
    const lane *mine = &p->stages[s].lanes[lane_number];
    if (mine->ended == mine->begun) return false;
    if (lane_number < SLC_LANE_CHANNELS) return true;
    const slc_stage_channel *channel = &p->stages[s].job->channels[lane_number - SLC_LANE_CHANNELS];
    return p->stages[channel->stage].lanes[SLC_LANE_CHANNELS + p->other[s][lane_number - SLC_LANE_CHANNELS]].begun >
           mine->ended;
}

/* Moves a lane as far as it goes. */
static bool advance(const pipeline *p, uint32_t s, uint32_t lane_number)
{
    lane *l = &p->stages[s].lanes[lane_number];
    bool moved = false, again = true;
    while (again) {
        again = false;
        if (l->begun < PASSES * l->count && may_begin(&p->stages[s], l, lane_number == SLC_LANE_COMPUTE)) {
            l->begun++;
            again = true;
        }
        if (may_end(p, s, lane_number)) {
            l->ended++;
            again = true;
        }
        moved |= again;
    }
    return moved;
}

static sluice_status stand_still(const pipeline *p)
{
    char text[300] = "";
    size_t used = 0;
    for (uint32_t s = 0; s < p->count; s++) {
        const lane *l = &p->stages[s].lanes[SLC_LANE_COMPUTE];
        if (l->begun == PASSES * l->count || used + 80 > sizeof text) continue;
        const slc_item *item = &p->stages[s].program->items[l->items[l->begun % l->count]];
        used += (size_t)snprintf(text + used, sizeof text - used, "%sstage %u before slot %u of micro-batch %u",
                                 used ? ", " : "", s, item->slot, item->micro_batch);
    }
    return slc_error(SLUICE_ERR_FORMAT, "invalid stages: they wait for each other: %s",
                     *text ? text : "a message never arrives");
}

static sluice_status run_all(const pipeline *p)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t s = 0; s < p->count; s++)
            for (uint32_t l = 0; l < SLC_LANE_CHANNELS + p->stages[s].job->channel_count; l++)
                if (p->stages[s].lanes[l].count) moved |= advance(p, s, l);
    }
    for (uint32_t s = 0; s < p->count; s++)
        for (uint32_t l = 0; l < SLC_LANES; l++)
            if (p->stages[s].lanes[l].ended < PASSES * p->stages[s].lanes[l].count) return stand_still(p);
    return SLUICE_OK;
}

/* ---- The whole ---- */

static bool stage_init(stage *s, const slc_job *job, const slc_program *program)
{
    *s = (stage){.job = job, .program = program};
    s->place = calloc((size_t)program->item_count + 1, sizeof *s->place);
    if (!s->place) return false;
    for (uint32_t i = 0; i < program->item_count; i++) s->place[i] = s->lanes[slc_lane_of(&program->items[i])].count++;
    for (uint32_t l = 0; l < SLC_LANES; l++) {
        s->lanes[l].items = calloc((size_t)s->lanes[l].count + 1, sizeof *s->lanes[l].items);
        if (!s->lanes[l].items) return false;
    }
    for (uint32_t i = 0; i < program->item_count; i++) s->lanes[slc_lane_of(&program->items[i])].items[s->place[i]] = i;
    return true;
}

static void stage_fini(stage *s)
{
    for (uint32_t l = 0; l < SLC_LANES; l++) free(s->lanes[l].items);
    free(s->place);
}

sluice_status slc_stages_validate(const slc_job *const *jobs, const slc_plan *const *plans, uint32_t stages)
{
    pipeline p = {.count = stages};
    p.stages = calloc((size_t)stages + 1, sizeof *p.stages);
    p.other = calloc((size_t)stages + 1, sizeof *p.other);
    bool all = p.stages && p.other;
    for (uint32_t s = 0; all && s < stages; s++) all = stage_init(&p.stages[s], jobs[s], &plans[s]->train);
    sluice_status status = all ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "validator of %u stages", stages);
    for (uint32_t s = 0; !status && s < stages; s++)
        for (uint32_t c = 0; !status && c < jobs[s]->channel_count; c++) status = find_other_end(&p, s, c);
    if (!status) status = run_all(&p);
    for (uint32_t s = 0; p.stages && s < stages; s++) stage_fini(&p.stages[s]);
    free(p.other);
    free(p.stages);
    return status;
}
