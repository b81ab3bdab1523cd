/* The state of a joint search, and its members by file. Private to sched/joint. One thread calls all of this. */
#pragma once

#include "sched/joint/joint_request.h"
#include "sched/search/shortlist.h"

#include <stdint.h>

/* Jobs of at most so many units have plans that are quickly made. */
enum { SLC_FINE_UNITS = 16 };

typedef struct {
    const slc_joint_request *request; /* its work is counted, whether or not the caller asks */
    slc_joint_answer *answer;
    uint64_t start_ns;
    slc_work *work;
    double begun_s, until_s;  /* nominal seconds of `work` */
    double effort_s;          /* what they were at the beginning */
    double least_from_s;      /* until there is a plan, the search for the least memory keeps what comes after them */
    double least_step_s;      /* a step's compute alone: no step is shorter */
    slc_times baseline_times; /* the request's, but for the run that units are cut into; borrows its arrays */
    slc_strategy *strategies; /* choices of the member that is looked at */
    bool *recompute;
    slc_shortlist list;
    /* Bounds of answers of the slot model: of the first one; of the last one within the limit (infinity: it had none).
     * 0: not asked. They guide the search; a plan may do what no answer does, so they are no bounds of plans. */
    double first_bound_s, bound_s;
    double plan_s;    /* nominal seconds of the longest plan so far of a scheduler that measures none before */
    double proving_s; /* nominal seconds that the bound of plans has taken, not counted in `work` yet */
    uint64_t least;   /* smallest arena seen */
} slc_joint_search;

/* ---- joint.c ---- */
/* Searches once, for the times that the request has: slc_joint_plan without its second search. */
sluice_status slc_joint_search_once(const slc_joint_request *request, slc_joint_answer *answer, uint64_t *least);

/* ---- search.c ---- */
/* The step of the fastest plan; there must be one. */
double slc_joint_best_s(const slc_joint_search *j);
/* Nominal seconds left; at 0 planning ends, and the answer says why. */
double slc_joint_left_s(slc_joint_search *j);
/* Returns true if effort is left, and for a deep job, whose plans take a good part of a small effort, enough for
 * another plan. */
bool slc_joint_affords_plan(slc_joint_search *j);
/* Returns true if effort is left, and for a deep job enough for another plan of this scheduler. */
bool slc_joint_affords(slc_joint_search *j, const slc_scheduler *scheduler);
/* The effort at which the search ends for now, in nominal seconds. */
double slc_joint_end_s(const slc_joint_search *j);
/* Returns true if the effort is spent; slc_joint_left_s also asks what more of it is worth. */
bool slc_joint_is_spent(const slc_joint_search *j);
/* Returns true if orders take long to pack. */
bool slc_joint_is_deep(const slc_joint_search *j);
/* The input of a scheduler for the choices looked at. */
slc_scheduling slc_joint_scheduling_of(const slc_joint_search *j);
/* Seconds that the step of a plan of this scheduler with the choices looked at must be below to be of interest; 0: any
 * is. */
double slc_joint_below_s(const slc_joint_search *j, const slc_scheduler *scheduler);
/* Takes the plan, of this forecast, over if it fits and its step is short enough; else destroys it. */
sluice_status slc_joint_consider(slc_joint_search *j, slc_plan *plan, const slc_forecast *forecast,
                                 const slc_scheduler *scheduler, const char *member);
/* Looks at one strategy for all free units; free layers recompute if `recompute_free`. */
void slc_joint_choose_uniform(slc_joint_search *j, slc_strategy strategy, bool recompute_free);
/* Returns true if recomputation of any layer is free. */
bool slc_joint_may_recompute(const slc_joint_request *r);
/* Returns true if the slot model chooses. */
bool slc_joint_has_model(const slc_joint_request *r);
/* Notes an error in spite of which planning goes on. */
void slc_joint_note_problem(slc_joint_search *j, sluice_status status);
/* Returns true if there is a plan so close to the model's bound that no other answer is needed. */
bool slc_joint_is_near_bound(const slc_joint_search *j);

/* ---- members.c: choices that a rule makes ---- */
/* Sets the runs into which baselines cut units: those that saturate the link, or longer ones if these would be too
 * many. */
void slc_joint_choose_runs(slc_joint_search *j);
/* Tries all baseline schedulers on the choices looked at, which `what` names: the first one in any case, the others
 * while there is effort. */
sluice_status slc_joint_try_schedulers(slc_joint_search *j, const char *what);
/* Tries all baselines but those of fsdp if `all`, else those of fsdp alone: one of these fits whenever anything simple
 * does. */
sluice_status slc_joint_try_baselines(slc_joint_search *j, bool all);
/* The choices that growth finds are good to begin with, and cost little. */
sluice_status slc_joint_try_growth(slc_joint_search *j);
/* Tries the order of the plan that the request begins with, if it has one. */
sluice_status slc_joint_try_start(slc_joint_search *j);
/* Tries the mixtures for each baseline. */
sluice_status slc_joint_try_mixtures(slc_joint_search *j);
/* Tries the mixture of the scheduler that plans most quickly, for a tenth of the effort. So there is a plan near the
 * budget, however much the model's answers lose to packing. */
sluice_status slc_joint_try_quick_mixture(slc_joint_search *j);
/* If nothing else fits, tries the choices that need least under the schedulers that need little. */
sluice_status slc_joint_try_least_memory(slc_joint_search *j);

/* ---- model.c: choices and orders of the slot model ---- */
/* Asks the slot model, with onebit as a choice and without, and makes plans of its answers. */
sluice_status slc_joint_try_slot_model(slc_joint_search *j);
/* Tries orders of the fastest plan's choices. */
sluice_status slc_joint_try_orders_of_fastest(slc_joint_search *j);
/* Works out the bound that the answer tells, if the model was asked: one of all valid plans. */
sluice_status slc_joint_prove_bound(slc_joint_search *j);
