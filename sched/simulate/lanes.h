/* Two lanes in simulated time: a program prepared for running, and how far it has run. Private to sched. The
 * waits of an item are two counts, of finished items of the compute lane and of finished operations, because both lanes
 * run in order. */
#pragma once

#include "sched/simulate/forecast.h"

enum { SLC_OPEN_OPERATIONS = 8 };

typedef struct {
    double s;                     /* seconds, alone */
    int32_t computed, operations; /* counts that must be over before it starts, from the start of its pass; if <= 0,
                                     items of earlier passes */
    int32_t computed_at_first, operations_at_first; /* the same counts in the first pass, which leaves late items out */
    uint32_t item; /* SLC_NONE: what the program does outside of slots, the last of a pass's compute lane */
    bool on_thread, late;
    bool alone; /* no other rank comes to it */
} slc_lane_item;

typedef struct {
    const slc_lane_item *item;
    double left_s; /* seconds, alone */
    double met_s;  /* when the other ranks come to it */
    bool started, ended;
    uint64_t pass;
} slc_open_operation;

/* Seconds that have passed so far. */
typedef struct {
    double end_s, waited_s, compute_s, outside_s, communication_s, update_s;
} slc_lane_sums;

typedef struct {
    const slc_simulation *options;
    const slc_job *job;
    const slc_program *program;
    slc_lane_item *computed, *operations; /* of one pass: the compute lane's items, the communication lane's items */
    uint32_t computed_count, operation_count;
    /* Speed of communication while a slot runs; of compute while communication runs, and while the thread computes. */
    double beside_slot, beside_communication, beside_thread;
    bool one_resource;
    double late_s; /* how much later other ranks come to an operation on the link */
    double tiny_s; /* shorter times are rounding errors */

    double now_s, last_computed_end_s;
    bool computes;
    double computed_left_s;
    uint64_t computed_pass, operation_pass; /* pass of the next item to start */
    uint32_t next_computed, next_operation;
    int64_t computed_over, operations_opened, operations_over; /* counted over all passes */
    slc_open_operation open[SLC_OPEN_OPERATIONS];              /* operation i is at i modulo SLC_OPEN_OPERATIONS */
    slc_lane_sums sums;

    slc_item_times *record[2]; /* times of even and of odd passes; NULL: not wanted */
    uint64_t last_recorded;    /* number of a pass */
} slc_simulated_lanes;

/* Prepares a plan's training program. All that is given must outlive `lanes`. Where the times have probabilities and
 * the options leave nothing out, each item takes what it takes in the mean. Errors: MEMORY, FORMAT (the plan has no
 * slots). */
sluice_status slc_simulated_lanes_init(slc_simulated_lanes *lanes, const slc_job *job, const slc_times *times,
                                       const slc_plan *plan, const slc_simulation *options);
void slc_simulated_lanes_fini(slc_simulated_lanes *lanes);

/* Runs on until so many items of the compute lane and so many operations are over. Errors: FORMAT if nothing can go
 * on. */
sluice_status slc_simulated_lanes_run(slc_simulated_lanes *lanes, int64_t computed, int64_t operations);
