/* Plans for steps that draw the layers which they keep. A plan's mean step is no step of mean times: where a layer is
 * left out, what hid behind its compute may be exposed. So the slot model, which gives choices and orders to begin
 * with, reads mean times, and the simulator judges every plan by drawn steps. The plan for all layers is among them.
 * What the search ends with was chosen for few draws; it is taken only if it is the faster one on many others too. */
#include "sched/joint/joint.h"

#include "sched/joint/search.h"
#include "sched/simulate/simulate.h"

#include <string.h>

typedef struct {
    slc_times all, mean; /* as if every step kept all layers; times of slots weighed by probabilities */
} drawn_times;

static sluice_status make_times(const slc_joint_request *request, drawn_times *out)
{
    *out = (drawn_times){0};
    sluice_status status = slc_times_copy(request->job, request->times, &out->all);
    if (!status) status = slc_times_copy(request->job, request->times, &out->mean);
    if (status) return status;
    slc_times_weigh_slots(request->job, &out->mean);
    return slc_times_set_keeps(request->job, NULL, &out->all);
}

/* Takes the second answer if its mean step is the shorter one, and tells of both searches. */
static sluice_status take_faster(const slc_joint_request *request, const slc_joint_answer *second,
                                 slc_joint_answer *answer)
{
    slc_forecast of_second;
    sluice_status status = slc_simulate(request->job, request->times, answer->plan, NULL, &answer->forecast);
    if (!status) status = slc_simulate(request->job, request->times, second->plan, NULL, &of_second);
    answer->bound_s = answer->model_s = 0;
    answer->solver_s += second->solver_s;
    answer->total_s += second->total_s;
    answer->effort_s += second->effort_s;
    answer->ended = second->ended;
    slc_plan *worse = second->plan;
    if (!status && of_second.step_s < answer->forecast.step_s) {
        worse = answer->plan;
        answer->plan = second->plan;
        answer->forecast = of_second;
        memcpy(answer->member, second->member, sizeof answer->member);
        memcpy(answer->note, second->note, sizeof answer->note);
    }
    slc_plan_destroy(worse);
    return status;
}

static sluice_status plan_drawn(const slc_joint_request *request, const drawn_times *times, slc_joint_answer *answer,
                                uint64_t *least)
{
    slc_joint_request all = *request, drawn = *request;
    slc_joint_answer second;
    all.times = &times->all;
    sluice_status status = slc_joint_search_once(&all, answer, least);
    if (status) return status;
    drawn.mean_times = &times->mean;
    drawn.start = answer->plan;
    status = slc_joint_search_once(&drawn, &second, NULL);
    if (!status) status = take_faster(request, &second, answer);
    if (status) slc_plan_destroy(answer->plan);
    return status;
}

sluice_status slc_joint_plan(const slc_joint_request *request, slc_joint_answer *answer, uint64_t *least)
{
    drawn_times times;
    if (!request->times->keeps) return slc_joint_search_once(request, answer, least);
    *answer = (slc_joint_answer){0};
    sluice_status status = make_times(request, &times);
    if (!status) status = plan_drawn(request, &times, answer, least);
    if (status) answer->plan = NULL;
    slc_times_fini(&times.all);
    slc_times_fini(&times.mean);
    return status;
}
