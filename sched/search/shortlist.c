/* A short sorted array that is searched from end to end. */
#include "sched/search/shortlist.h"

#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Finds the plan with these choices. Plans of the model and others count apart if the list keeps the fastest of each.
 */
static const slc_candidate *find_choices(const slc_shortlist *list, const slc_strategy *strategies,
                                         const bool *recompute, bool of_model)
{
    const slc_job *job = list->job;
    for (uint32_t i = 0; i < list->count; i++)
        if ((list->list[i].of_model == of_model || list->second_slack <= 1) &&
            !memcmp(list->list[i].strategies, strategies, job->unit_count * sizeof *strategies) &&
            !memcmp(list->list[i].recompute, recompute, job->layer_count * sizeof *recompute))
            return &list->list[i];
    return NULL;
}

static const slc_candidate *fastest_of(const slc_shortlist *list, bool of_model)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->list[i].of_model == of_model) return &list->list[i];
    return NULL;
}

/* A kind has its own fastest plan to compare with, as long as that is near the fastest of all. */
static double second_below_s(const slc_shortlist *list, bool of_model)
{
    const double best_s = list->list[0].forecast.step_s;
    const slc_candidate *own = fastest_of(list, of_model);
    return own ? own->forecast.step_s : fmax(list->second_slack, 1) * best_s;
}

double slc_shortlist_below_s(const slc_shortlist *list, const slc_strategy *strategies, const bool *recompute,
                             bool of_model)
{
    if (!list->count) return 0;
    double below_s = fmax(list->slack * list->list[0].forecast.step_s, second_below_s(list, of_model));
    const slc_candidate *same = find_choices(list, strategies, recompute, of_model);
    if (same) return fmin(below_s, same->forecast.step_s);
    return list->count == SLC_SHORTLIST ? fmin(below_s, list->list[list->count - 1].forecast.step_s) : below_s;
}

static void candidate_fini(slc_candidate *candidate)
{
    slc_plan_destroy(candidate->plan);
    free(candidate->strategies);
    free(candidate->recompute);
}

static int fastest_first(const void *a, const void *b)
{
    const slc_candidate *x = a, *y = b;
    return (x->forecast.step_s > y->forecast.step_s) - (x->forecast.step_s < y->forecast.step_s);
}

void slc_shortlist_sort(slc_shortlist *list)
{
    if (list->count) qsort(list->list, list->count, sizeof *list->list, fastest_first);
}

/* Makes room for a candidate: in place of the one with the same choices, or of the slowest if the list is full. */
static slc_candidate *place_for(slc_shortlist *list, const slc_candidate *candidate)
{
    slc_candidate *same =
        (slc_candidate *)find_choices(list, candidate->strategies, candidate->recompute, candidate->of_model);
    if (!same && list->count < SLC_SHORTLIST) return &list->list[list->count++];
    if (!same) same = &list->list[list->count - 1];
    candidate_fini(same);
    return same;
}

/* Returns true if a plan may stay that is slower than the slack allows: the fastest of its kind, if it is near the
 * fastest of all. */
static bool is_second(const slc_shortlist *list, const slc_candidate *candidate)
{
    return candidate == fastest_of(list, candidate->of_model) &&
           candidate->forecast.step_s <= list->second_slack * list->list[0].forecast.step_s;
}

static void drop_slow(slc_shortlist *list)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        slc_candidate *c = &list->list[i];
        if (c->forecast.step_s > list->slack * list->list[0].forecast.step_s && !is_second(list, c))
            candidate_fini(c);
        else
            list->list[kept++] = *c;
    }
    list->count = kept;
}

sluice_status slc_shortlist_take(slc_shortlist *list, const slc_candidate *candidate)
{
    size_t units = list->job->unit_count, layers = list->job->layer_count;
    slc_candidate taken = *candidate;
    taken.strategies = malloc((units + 1) * sizeof *taken.strategies);
    taken.recompute = malloc((layers + 1) * sizeof *taken.recompute);
    if (!taken.strategies || !taken.recompute) {
        candidate_fini(&taken);
        return slc_error(SLUICE_ERR_MEMORY, "plan: no memory for %zu choices", units + layers);
    }
    memcpy(taken.strategies, candidate->strategies, units * sizeof *taken.strategies);
    memcpy(taken.recompute, candidate->recompute, layers * sizeof *taken.recompute);
    *place_for(list, candidate) = taken;
    slc_shortlist_sort(list);
    drop_slow(list);
    return SLUICE_OK;
}

void slc_shortlist_fini(slc_shortlist *list)
{
    while (list->count) candidate_fini(&list->list[--list->count]);
}
