/* Plans are made on rank 0 and sent to all as text, for a solver's time limit is not deterministic; an error is sent in
 * their place, so that every rank says the same. */
#include "lib/engine/replan/replan.h"

#include "lib/base/status.h"
#include "lib/plan/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What comes before the text of a plan or of an error. */
typedef struct {
    sluice_status status;
    uint64_t length;
    slc_plan_answer answer; /* its pointers mean nothing elsewhere */
} announcement;

bool slc_schedule_wants_times(const char *schedule)
{
    static const char *const names[] = {SLC_SCHEDULE_DEFAULT, "portfolio", "greedy", "priority"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(schedule, names[i])) return true;
    return false;
}

/* Of the layers that can: none, all, or those that the planner chooses. */
static uint8_t recompute_choice(const sluice_runtime *rt, const sluice_layer *layer)
{
    const sluice_recompute choice = rt->config.recompute;
    if (!layer->can_recompute || choice == SLUICE_RECOMPUTE_NONE) return 0;
    return choice == SLUICE_RECOMPUTE_ALL ? 1 : 2;
}

/* Of the layer that brings its parameters; rows have the one that there is for them. */
static slc_strategy forced_strategy(const sluice_runtime *rt, uint32_t u)
{
    const slc_unit *unit = &rt->job.units[u];
    if (unit->role == SLC_UNIT_ROWS) return SLC_STRATEGIES;
    slc_strategy forced = rt->layers[rt->units[u].params[0]->layer]->forced;
    return forced == SLC_STRATEGIES || unit->role == SLC_UNIT_WHOLE ? forced
                                                                    : slc_unit_strategy(&rt->job, unit, forced);
}

/* A plan that a measured one follows has updates on either lane, so that both are measured. */
static slc_updates updates_choice(const sluice_runtime *rt, const slc_plan_request *request)
{
    if (!rt->optimizer.concurrent) return SLC_UPDATES_COMMUNICATION;
    if (rt->updates_lane != SLC_UPDATES_AUTO || request->times) return rt->updates_lane;
    return rt->replan_due ? SLC_UPDATES_BOTH : SLC_UPDATES_COMMUNICATION;
}

sluice_status slc_engine_add_choices(const sluice_runtime *rt, slc_plan_request *request)
{
    uint32_t units = rt->job.unit_count, layers = rt->job.layer_count;
    slc_strategy *forced = malloc((units + 1) * sizeof *forced);
    uint8_t *recompute = calloc((size_t)layers + 1, sizeof *recompute);
    request->forced = forced;
    request->recompute = recompute;
    if (!forced || !recompute) return slc_error(SLUICE_ERR_MEMORY, "plan");
    for (uint32_t u = 0; u < units; u++) forced[u] = forced_strategy(rt, u);
    for (uint32_t l = 0; l < layers; l++) recompute[l] = recompute_choice(rt, rt->layers[l]);
    request->updates = updates_choice(rt, request);
    request->cancel = &rt->cancel;
    return SLUICE_OK;
}

void slc_engine_free_choices(slc_plan_request *request)
{
    free((void *)request->forced);
    free((void *)request->recompute);
    request->forced = NULL;
    request->recompute = NULL;
}

/* With the layers' own strategies. */
static sluice_status plan(sluice_runtime *rt, slc_plan_request request, slc_plan_answer *answer)
{
    sluice_status status = slc_engine_add_choices(rt, &request);
    if (!status) status = rt->planner.plan(&rt->job, &request, answer);
    slc_engine_free_choices(&request);
    return status;
}

/* On rank 0: the plan as text, or the error's line. NULL: no memory. */
static char *make_plan(sluice_runtime *rt, const slc_plan_request *request, announcement *said)
{
    char *text = NULL;
    char error[1024]; /* the last one of the caller: a candidate that does not fit is none */
    snprintf(error, sizeof error, "%s", sluice_last_error());
    slc_comm_work(rt->comm, "planning");
    said->status = plan(rt, *request, &said->answer);
    slc_comm_work(rt->comm, NULL);
    if (!said->status) slc_error(SLUICE_OK, "%s", error);
    if (!said->status && rt->size > 1)
        said->status = slc_plan_to_json(&rt->job, said->answer.plan, &said->answer.forecast, &text);
    if (said->status || !text) {
        free(text);
        text = strdup(said->status ? sluice_last_error() : "");
    }
    said->length = text ? strlen(text) : 0;
    return text;
}

static sluice_status read_plan(sluice_runtime *rt, const announcement *said, const char *text, slc_plan **out)
{
    if (said->status) return slc_error(said->status, "%s", text ? text : "rank 0 has no plan");
    return slc_plan_from_json(&rt->job, text, said->length, out);
}

/* Rank 0 plans, the others hear of it. *out is this rank's. */
static sluice_status announce(sluice_runtime *rt, const slc_plan_request *request, announcement *said, slc_plan **out)
{
    char *text = rt->rank == 0 ? make_plan(rt, request, said) : NULL;
    sluice_status status = sluice_world_broadcast(rt->world, said, sizeof *said, 0);
    if (!status && rt->rank != 0) text = malloc(said->length + 1);
    bool no_memory = !status && !text;
    double missing = no_memory;
    if (!status) status = sluice_world_all_reduce(rt->world, &missing, 1);
    if (!status && missing > 0) status = slc_error(SLUICE_ERR_MEMORY, "no memory to send a plan around");
    if (!status && said->length) status = sluice_world_broadcast(rt->world, text, said->length, 0);
    if (!status && rt->rank != 0) {
        text[said->length] = 0;
        status = read_plan(rt, said, text, out);
    }
    if (rt->rank == 0) {
        *out = said->answer.plan;
        if (!status && said->status) status = slc_error(said->status, "%s", text);
    }
    free(text);
    return status;
}

sluice_status slc_engine_share_plan(sluice_runtime *rt, const slc_plan_request *request, slc_plan_answer *answer)
{
    announcement said = {0};
    slc_plan *made = NULL;
    rt->alike = false;
    sluice_status status = announce(rt, request, &said, &made);
    *answer = said.answer;
    answer->forecast.why = NULL;
    answer->plan = made;
    /* All ranks know whether rank 0 had a plan; whether each could read it they find out together. */
    if (!said.status && !sluice_world_check(rt->world)) {
        sluice_status same = slc_engine_compare_plan(rt, status ? NULL : made);
        if (!status) status = same;
    }
    if (!status) return SLUICE_OK;
    rt->alike = true; /* whoever could not take part has said so before */
    slc_plan_destroy(made);
    answer->plan = NULL;
    return status;
}
