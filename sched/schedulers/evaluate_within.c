/* An evaluation pass that gathers one window ahead, as one_ahead does, if the limit has room for it; any other
 * window is gathered right before its slot. An evaluation keeps what training would recompute, so it may be what
 * decides whether a plan fits, and no step of training is shorter for its gathers.
 * schedulers_test.c covers this file. */
#include "lib/plan/strategy_table.h"
#include "sched/scheduler.h"

#include <stdlib.h>

enum { KEPT_FREE = 32 }; /* values are gathered ahead while a 32nd of the limit is left, which packing may need */

/* Adds bytes to the slots from `first` to `last` of an evaluation pass: changes [L + 1] holds how much more is in
 * memory than in the slot before. */
static void add_change(int64_t *changes, uint32_t first, uint32_t last, uint64_t bytes)
{
    changes[first] += (int64_t)bytes;
    changes[last + 1] -= (int64_t)bytes;
}

/* bytes[s] becomes what is in memory in slot s of an evaluation pass that gathers each window right before its first
 * slot, and ahead[s] what else is if the windows that begin with the next slot are there too. */
static void sum_evaluation(const slc_scheduling *in, int64_t *bytes, int64_t *ahead)
{
    const slc_job *job = in->job;
    slc_window window;
    add_change(bytes, 0, job->layer_count - 1, job->scratch_bytes + 8 * slc_agreement_words(job));
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        if (life->last_forward_slot >= life->first_slot && life->last_forward_slot < job->layer_count)
            add_change(bytes, life->first_slot, life->last_forward_slot, life->bytes);
    }
    for (uint32_t w = 0; w < job->workspace_count; w++)
        if (slc_slot_is_forward(job, job->workspaces[w].slot))
            add_change(bytes, job->workspaces[w].slot, job->workspaces[w].slot, job->workspaces[w].bytes);
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        add_change(bytes, 0, job->layer_count - 1, slc_resident_bytes(job, unit, in->strategies[u]));
        uint64_t whole = slc_operation_bytes(job, unit, SLC_ITEM_GATHER_WINDOW, unit->elements);
        for (uint32_t w = 0; slc_gathers_windows(in->strategies[u]) && slc_unit_window(job, unit, false, w, &window);
             w++) {
            add_change(bytes, window.first_slot, window.last_slot, whole);
            if (window.first_slot) ahead[window.first_slot - 1] += (int64_t)whole;
        }
    }
    for (uint32_t s = 1; s < job->layer_count; s++) bytes[s] += bytes[s - 1];
}

void slc_evaluate_within(const slc_scheduling *in, slc_order *order)
{
    const slc_job *job = in->job;
    if (in->limit > INT64_MAX) {
        slc_evaluate_one_ahead(in, order);
        return;
    }
    const int64_t room = (int64_t)(in->limit - in->limit / KEPT_FREE);
    int64_t *bytes = calloc(2 * (size_t)job->layer_count + 2, sizeof *bytes);
    if (!bytes) {
        order->failed = true;
        return;
    }
    int64_t *ahead = bytes + job->layer_count + 1;
    bool gathered = false;
    sum_evaluation(in, bytes, ahead);
    for (uint32_t s = 0; s < job->layer_count; s++) {
        if (!gathered) slc_order_gathers_for(order, job, in->strategies, true, 0, s);
        gathered = s + 1 < job->layer_count && bytes[s] + ahead[s] <= room;
        if (gathered) slc_order_gathers_for(order, job, in->strategies, true, 0, s + 1);
        slc_order_slot(order, 0, s);
    }
    free(bytes);
}
