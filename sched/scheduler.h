/* A scheduler turns a job and its strategies into one total order of slots and operations. Everything that follows from
 * the order (lifetimes, packing, tickets) is the same for all schedulers, and slc_plan_make works it out. */
#pragma once

#include "sched/order/order.h"

#include <stddef.h>

/* A scheduler is one file in sched/schedulers with one of these, its declaration below, and its row in registry.c. */
typedef struct {
    const char *name;        /* as the user writes it */
    const char *doc;         /* one clause for --help and messages */
    bool slots_wait_for_all; /* no compute overlaps any communication */
    bool wants_times;        /* its orders follow measured times: the engine measures, then plans again */
    bool baseline;           /* a schedule that other systems have: the joint plan is held against it */
    void (*train)(const slc_scheduling *in, slc_order *order);
    void (*evaluate)(const slc_scheduling *in, slc_order *order);
    uint32_t measures; /* plans that it may pack before it has an order, for each pass */
} slc_scheduler;

extern const slc_scheduler slc_scheduler_serial, slc_scheduler_one_ahead, slc_scheduler_bucketed,
    slc_scheduler_priority, slc_scheduler_greedy, slc_scheduler_random, slc_scheduler_ilp, slc_scheduler_portfolio;

/* The evaluation of schedulers that have no order of their own for it: windows are gathered one slot ahead. */
void slc_evaluate_one_ahead(const slc_scheduling *in, slc_order *order);

/* Orders the evaluation as slc_evaluate_one_ahead does, but within in->limit: a window for which there is no room ahead
 * is gathered right before its slot. */
void slc_evaluate_within(const slc_scheduling *in, slc_order *order);

/* Returns true if the scheduler is one of the two that choose strategies too (sched/joint/joint.h). ilp needs a solver
 * (slc_slot_model_solver). */
bool slc_scheduler_is_joint(const slc_scheduler *scheduler);

const slc_scheduler *slc_scheduler_find(const char *name); /* NULL: there is none of that name */
const char *slc_scheduler_names(void);                     /* "ilp, serial, ...": for messages; static memory */
const slc_scheduler *slc_scheduler_at(size_t index);       /* all schedulers in turn but portfolio, which has no order
                                                              of its own; NULL after the last */
bool slc_scheduler_wants_times(const char *name);          /* its field, false for one that this build does not offer */
