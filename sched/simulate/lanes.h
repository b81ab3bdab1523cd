/* Two lanes in simulated time: a program made ready to run, and where it stands. Private to sched. What an item
 * waits for is two counts, of finished items of the compute lane and of finished operations, because both lanes run in
 * order. */
#ifndef SLC_SIMULATED_LANES_H
#define SLC_SIMULATED_LANES_H

#include "sched/simulate/simulate.h"

enum { SLC_OPEN_OPERATIONS = 8 };

typedef struct {
    double s;                     /* alone */
    int32_t computed, operations; /* over before it starts; counted from the start of its pass, so <= 0: of earlier
                                     ones */
    int32_t computed_at_first, operations_at_first; /* in the first pass, where late items are left out */
    uint32_t item;
    bool on_thread, late;
} slc_lane_item;

typedef struct {
    const slc_lane_item *item;
    double left_s; /* alone */
    bool started, ended;
    uint64_t pass;
} slc_open_operation;

/* What has passed so far. */
typedef struct {
    double end_s, waited_s, compute_s, communication_s, update_s;
} slc_lane_sums;

typedef struct {
    const slc_simulation *options;
    slc_lane_item *computed, *operations; /* of one pass: of the compute lane, of the communication lane */
    uint32_t computed_count, operation_count;
    double beside_slot, beside_communication; /* speeds of communication and of compute while both run */
    bool one_resource;
    double tiny_s; /* less is nothing: what rounding leaves */

    double now_s, last_computed_end_s;
    bool computes;
    double computed_left_s;
    uint64_t computed_pass, operation_pass; /* of the next to start */
    uint32_t next_computed, next_operation;
    int64_t computed_over, operations_opened, operations_over; /* ever */
    slc_open_operation open[SLC_OPEN_OPERATIONS];              /* operation i at i modulo this */
    slc_lane_sums sums;

    slc_item_times *record[2]; /* of even and of odd passes; NULL: not wanted */
    uint64_t last_recorded;    /* pass */
} slc_simulated_lanes;

/* `options` must outlive it. Errors: MEMORY, FORMAT. */
sluice_status slc_simulated_lanes_init(slc_simulated_lanes *lanes, const slc_job *job, const slc_times *times,
                                       const slc_plan *plan, const slc_simulation *options);
void slc_simulated_lanes_fini(slc_simulated_lanes *lanes);

/* Runs on until so many items of the compute lane and operations are over. Errors: FORMAT when nothing can go on. */
sluice_status slc_simulated_lanes_run(slc_simulated_lanes *lanes, int64_t computed, int64_t operations);

#endif
