/* Plans are made on rank 0 and sent to all as text, because a solver's time limit is not deterministic. An error is
 * sent in their place, so that every rank says the same.
 * tests/engine/replan_test.c covers this file. */
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Comes before the text of a plan. */
typedef struct {
    uint64_t length;
    slc_plan_answer answer; /* its pointers mean nothing elsewhere */
    uint32_t which;         /* of the requests */
} announcement;

/* A wish asks for the plan of one request, or for the fastest plan of several. */
typedef struct {
    const slc_plan_request *requests;
    uint32_t count;
    double below_s;    /* a plan of a longer step is none; 0: any is welcome */
    uint64_t until_ns; /* nothing is planned after this moment; 0: no such moment */
} wish;

static sluice_status plan_request(sluice_runtime *rt, const slc_plan_request *request, slc_plan_answer *answer)
{
    const slc_planner *planner = &rt->planning.planner;
    slc_plan_request asked = *request;
    asked.steps_left = slc_runtime_steps_left(rt);
    asked.time_limit_s = rt->config.plan_time_limit_s;
    sluice_status status = slc_engine_add_choices(rt, &asked);
    if (!status) status = planner->plan(planner->context, &rt->job, &asked, answer);
    slc_engine_free_choices(&asked);
    return status;
}

/* Plans all that was asked for and keeps the fastest plan. A request that does not fit the budget is no error if
 * another one does. */
static sluice_status plan_fastest(sluice_runtime *rt, const wish *wanted, announcement *said)
{
    for (uint32_t i = 0; i < wanted->count && slc_clock_ns() < wanted->until_ns; i++) {
        slc_plan_answer answer = {0};
        sluice_status status = plan_request(rt, &wanted->requests[i], &answer);
        if (status && status != SLUICE_ERR_BUDGET) return status;
        if (status) continue;
        const double step_s = answer.forecast.step_s;
        if (step_s > wanted->below_s || (said->answer.plan && step_s >= said->answer.forecast.step_s)) {
            slc_plan_destroy(answer.plan);
            continue;
        }
        slc_plan_destroy(said->answer.plan);
        said->answer = answer;
        said->which = i;
    }
    return said->answer.plan ? SLUICE_OK : slc_error(SLUICE_ERR_BUDGET, "no plan is as fast as %g s", wanted->below_s);
}

/* Called on rank 0. *text is the plan as text; NULL: there is no memory for it. */
static sluice_status make_plan(sluice_runtime *rt, const wish *wanted, announcement *said, char **text)
{
    slc_kept_error kept; /* a candidate that does not fit is no error */
    slc_error_keep(&kept);
    slc_comm_work(rt->comm, "planning");
    sluice_status status =
        wanted->below_s > 0 ? plan_fastest(rt, wanted, said) : plan_request(rt, wanted->requests, &said->answer);
    slc_comm_work(rt->comm, NULL);
    if (status) return status;
    slc_error_restore(&kept, SLUICE_OK);
    if (rt->size == 1)
        *text = strdup("");
    else
        status = slc_plan_to_json(&rt->job, said->answer.plan, &said->answer.forecast, text);
    said->length = *text ? strlen(*text) : 0;
    return status;
}

/* Sends rank 0's text to the others, which make their plans of it. */
static sluice_status send_text(sluice_runtime *rt, uint64_t length, char **text, slc_plan **out)
{
    if (rt->rank != 0) *text = malloc(length + 1);
    double missing = !*text;
    sluice_status status = sluice_world_all_reduce(rt->world, &missing, 1);
    if (!status && missing > 0) status = slc_error(SLUICE_ERR_MEMORY, "no memory to send a plan around");
    if (!status && length) status = sluice_world_broadcast(rt->world, *text, length, 0);
    if (status || rt->rank == 0) return status;
    (*text)[length] = 0;
    return slc_plan_from_json(&rt->job, *text, length, out);
}

/* Rank 0 plans and sends the plan to the others. *out is this rank's. *planned: rank 0 has one, as all ranks know. */
static sluice_status announce(sluice_runtime *rt, const wish *wanted, announcement *said, bool *planned, slc_plan **out)
{
    char *text = NULL;
    sluice_status status = rt->rank == 0 ? make_plan(rt, wanted, said, &text) : SLUICE_OK;
    status = sluice_world_share(rt->world, status, said, sizeof *said, 0);
    *planned = !status;
    if (!status) status = send_text(rt, said->length, &text, out);
    if (rt->rank == 0) *out = said->answer.plan;
    free(text);
    return status;
}

/* `plan` NULL: this rank has none, which is a difference too. */
static sluice_status compare_plan(sluice_runtime *rt, const slc_plan *plan)
{
    int other;
    sluice_status status = slc_engine_find_other(rt, plan ? slc_plan_fingerprint(plan) : 0, &other);
    if (status || !other) return status;
    return slc_error(SLUICE_ERR_MISMATCH,
                     "rank %d made another plan than rank 0: are all ranks the same build "
                     "of Sluice, with the same strategy file?",
                     other);
}

static sluice_status share(sluice_runtime *rt, const wish *wanted, slc_plan_answer *answer, uint32_t *which)
{
    announcement said = {0};
    slc_plan *made = NULL;
    bool planned;
    rt->failure.alike = false;
    sluice_status status = announce(rt, wanted, &said, &planned, &made);
    *answer = said.answer;
    *which = said.which;
    answer->forecast.why = NULL;
    answer->plan = made;
    /* All ranks know whether rank 0 has a plan. They find out together whether each could read it. */
    if (planned && !sluice_world_check(rt->world)) {
        sluice_status same = compare_plan(rt, status ? NULL : made);
        if (!status) status = same;
    }
    if (!status) return SLUICE_OK;
    rt->failure.alike = true; /* a rank that could not take part has said so before */
    slc_plan_destroy(made);
    answer->plan = NULL;
    return status;
}

sluice_status slc_engine_share_plan(sluice_runtime *rt, const slc_plan_request *request, slc_plan_answer *answer)
{
    uint32_t which;
    return share(rt, &(wish){.requests = request, .count = 1}, answer, &which);
}

sluice_status slc_engine_share_best_plan(sluice_runtime *rt, const slc_plan_request *requests, uint32_t count,
                                         double below_s, uint64_t until_ns, slc_plan_answer *answer, uint32_t *which)
{
    return share(rt, &(wish){requests, count, below_s, until_ns}, answer, which);
}

sluice_status slc_engine_share_simple_plan(sluice_runtime *rt, slc_plan_request *request, slc_plan_answer *answer)
{
    const char *schedule = request->schedule, *simple = rt->planning.planner.simple_schedule;
    if (simple) request->schedule = simple;
    sluice_status status = slc_engine_share_plan(rt, request, answer);
    if (status != SLUICE_ERR_BUDGET || !strcmp(schedule, request->schedule)) return status;
    request->schedule = schedule;
    return slc_engine_share_plan(rt, request, answer);
}

/* Checks that there is a simple plan of the job as it is. */
static sluice_status try_plan(sluice_runtime *rt, const slc_plan_request *request)
{
    slc_plan_request simple = *request;
    slc_plan_answer answer = {0};
    simple.times = NULL;
    sluice_status status = slc_engine_share_simple_plan(rt, &simple, &answer);
    if (!status) slc_plan_destroy(answer.plan);
    return status;
}

sluice_status slc_phase_check_plans(sluice_runtime *rt, const slc_plan_request *request)
{
    const slc_job job = rt->job;
    sluice_status status = SLUICE_OK;
    for (uint32_t p = 1; !status && request->budget_bytes && p < rt->onebit.phase_count; p++) {
        slc_job_set_phase(&rt->job, &rt->onebit.phases[p]);
        if (rt->job.compressed) status = try_plan(rt, request);
        rt->job = job;
    }
    return slc_error_context(status, "the compressed phase of optimizer %s, after its warm-up", rt->optimizer.name);
}
