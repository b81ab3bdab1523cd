/* Chooses strategies unit by unit, recomputation layer by layer, then places blocks family by family.
 * slot_model_test.c covers this file. */
#include "tests/support/ilp/enumerate.h"
#include "ilp/parts/slot_parts.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    const slc_slot_request *request;
    const slc_slot_model_parts *parts; /* with all strategies and all micro-batches */
    uint32_t blocks;
    slc_slot_solution answer; /* the answer that is looked at; its arrays have room for any */
    double best_s;
    uint64_t tried;
} enumeration;

static void judge_answer(enumeration *e)
{
    double step_s;
    uint64_t most;
    e->tried++;
    if (slc_slot_model_evaluate(e->request, &e->answer, &step_s, &most)) return; /* it breaks a rule */
    if (most <= e->request->limit && step_s < e->best_s) e->best_s = step_s;
}

/* Places `left` blocks of family `s` from `position` on, and all blocks of the families after it. */
static void place_blocks(enumeration *e, uint32_t s, uint32_t position, uint32_t left)
{
    while (s < e->parts->family_count &&
           (!left || !slc_has(e->parts->families[s].strategies, e->answer.strategies[e->parts->families[s].unit]))) {
        s++;
        left = e->blocks;
        position = 0;
    }
    if (s == e->parts->family_count) {
        judge_answer(e);
        return;
    }
    const slc_flow_family *family = &e->parts->families[s];
    if (position < family->first) position = family->first;
    for (uint32_t p = position; p <= family->last; p++) {
        e->answer.flows[e->answer.flow_count++] =
            (slc_flow){family->kind, family->unit, family->micro_batch, family->window, p, 1.0 / e->blocks};
        if (left > 1)
            place_blocks(e, s, p, left - 1);
        else
            place_blocks(e, s + 1, 0, e->blocks);
        e->answer.flow_count--;
    }
}

static void recompute_all(enumeration *e, uint32_t layer)
{
    if (layer == e->request->job->layer_count) {
        place_blocks(e, 0, 0, e->blocks);
        return;
    }
    uint8_t of = e->request->recompute ? e->request->recompute[layer] : 0;
    for (int again = of == 1; again <= (of > 0); again++) {
        e->answer.recompute[layer] = again;
        recompute_all(e, layer + 1);
    }
}

static void choose_all(enumeration *e, uint32_t unit)
{
    if (unit == e->request->job->unit_count) {
        recompute_all(e, 0);
        return;
    }
    for (int k = 0; k < SLC_STRATEGIES; k++)
        if (slc_has(slc_allowed_of(e->request, unit), (slc_strategy)k)) {
            e->answer.strategies[unit] = (slc_strategy)k;
            choose_all(e, unit + 1);
        }
}

static double placings_of(const enumeration *e, uint32_t unit, slc_strategy strategy)
{
    double placings = 1;
    for (uint32_t s = 0; s < e->parts->family_count; s++) {
        const slc_flow_family *family = &e->parts->families[s];
        if (family->unit != unit || !slc_has(family->strategies, strategy)) continue;
        for (uint32_t b = 0; b < e->blocks; b++) placings *= (double)(family->last - family->first + 1 + b) / (b + 1);
    }
    return placings;
}

static double count_placings(const enumeration *e)
{
    const slc_slot_request *r = e->request;
    double all = 1;
    for (uint32_t u = 0; u < r->job->unit_count; u++) {
        double of_unit = 0;
        for (int k = 0; k < SLC_STRATEGIES; k++)
            if (slc_has(slc_allowed_of(r, u), (slc_strategy)k)) of_unit += placings_of(e, u, (slc_strategy)k);
        all *= of_unit;
    }
    for (uint32_t l = 0; r->recompute && l < r->job->layer_count; l++) all *= r->recompute[l] == 2 ? 2 : 1;
    return all;
}

sluice_status slc_slot_model_enumerate(const slc_slot_request *request, double most, double *best_s, uint64_t *tried)
{
    slc_slot_model_parts parts;
    *tried = 0;
    *best_s = INFINITY;
    if (!request->whole_blocks) return slc_error(SLUICE_ERR_ARGUMENT, "enumeration: give a number of whole blocks");
    sluice_status status = slc_slot_parts_init(&parts, request, SLC_EVERYTHING);
    if (status) return status;
    enumeration e = {.request = request, .parts = &parts, .blocks = request->whole_blocks, .best_s = INFINITY};
    slc_slot_solution *a = &e.answer;
    a->strategies = calloc((size_t)request->job->unit_count + 1, sizeof *a->strategies);
    a->recompute = calloc((size_t)request->job->layer_count + 1, sizeof *a->recompute);
    a->flows = malloc(((size_t)parts.family_count * e.blocks + 1) * sizeof *a->flows);
    if (!a->strategies || !a->recompute || !a->flows)
        status = slc_error(SLUICE_ERR_MEMORY, "enumeration");
    else if (count_placings(&e) <= most)
        choose_all(&e, 0);
    free(a->strategies);
    free(a->recompute);
    free(a->flows);
    slc_slot_parts_fini(&parts);
    *best_s = e.best_s;
    *tried = e.tried;
    return status;
}
