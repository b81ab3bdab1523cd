/* The free part of a budget can go to strategies (units kept whole, sdp) or be left to the schedule (gathered buffers,
 * gradients that wait). For one budget: the step time of each share between the two, and the share of the joint plan,
 * which chooses both at once. */
#pragma once

#include "sched/simulate/simulate.h"

#include <sluice/status.h>

/* ---- The shape of a curve ---- */

typedef enum {
    SLC_SHAPE_UNKNOWN, /* fewer than three points */
    SLC_SHAPE_FLAT,
    SLC_SHAPE_FALLING, /* monotone: fastest where strategies have most */
    SLC_SHAPE_RISING,  /* monotone: fastest where the schedule has most */
    SLC_SHAPE_U,
    SLC_SHAPE_DOUBLE_VALLEY /* two or more valleys, counting those at the ends */
} slc_curve_shape;

const char *slc_curve_shape_name(slc_curve_shape shape); /* "U", "monotone, falling", ... */

/* The shape of step times in the order of their shares. Changes of no more than `tolerance` times the least step time
 * count as level. *valleys, if not NULL, becomes their number (a flat curve has 1). */
slc_curve_shape slc_curve_shape_of(const double *step_s, uint32_t count, double tolerance, uint32_t *valleys);

/* ---- The curve ---- */

typedef struct {
    const slc_job *job;
    const slc_times *times;
    const uint8_t *recompute; /* [L] 0 no, 1 yes, 2 free; NULL: no layer */
    uint64_t limit;           /* bytes of the arena */
    uint32_t count;           /* number of shares, evenly from 0 to 1; at least 2 */
    double effort_s;          /* for each plan; 0: the planner's own */
    bool quick;               /* as in slc_joint_request */
} slc_tradeoff_request;

typedef struct {
    double asked;            /* the share; NaN: the joint plan's point */
    uint64_t strategy_bytes; /* bytes kept beyond those that fsdp keeps */
    double share;            /* strategy_bytes over the free bytes; less than asked if no units have fitting sizes */
    slc_strategy *strategies;
    uint32_t same_as; /* an earlier point with the same strategies, and so the same plan; SLC_NONE: none */
    bool fits;        /* some schedule fits into the rest */
    slc_forecast forecast;
    char member[48]; /* name in the joint search */
} slc_tradeoff_point;

typedef struct {
    uint64_t floor_bytes;  /* bytes that every plan keeps: fsdp's part of everything, and the activations' peak */
    bool floor_recomputes; /* ... if all layers recompute that may: activations that are kept count as the schedule's */
    uint64_t free_bytes;   /* the limit minus floor_bytes */
    slc_tradeoff_point *points;
    uint32_t count;
    slc_tradeoff_point joint; /* strategies and schedule chosen together */
    slc_plan *joint_plan;
} slc_tradeoff;

/* Makes the curve. A share's choice is filled in the order in which "mixed" ranks units or in the reverse order,
 * whichever gives the faster simple plan: each unit that still fits into the share becomes sdp, the others fsdp. Its
 * schedule is the joint planner's for these strategies. The caller calls slc_tradeoff_fini, after an error too. Errors:
 * ARGUMENT (fewer than 2 shares); BUDGET (nothing is free, or no plan fits); MEMORY. */
sluice_status slc_tradeoff_make(const slc_tradeoff_request *request, slc_tradeoff *out);
void slc_tradeoff_fini(slc_tradeoff *tradeoff);
