/* A plan's distance to the slot model's bound, divided by its causes. sched/planner/distance.h says how each part is
 * found. */
#pragma once

#include <stdbool.h>

typedef enum {
    SLC_DISTANCE_UNPROVEN, /* the model's best answer is above the bound */
    SLC_DISTANCE_CHOICES,  /* strategies and recomputation are not those of that answer */
    SLC_DISTANCE_BLOCKS,   /* whole runs of blocks move instead of fractions */
    SLC_DISTANCE_ORDER,    /* the order is another than the model's */
    SLC_DISTANCE_LATENCY,  /* an operation's runs after its first pay a latency each */
    SLC_DISTANCE_PACKING,  /* operations wait for memory that others use */
    SLC_DISTANCE_OUTSIDE,  /* the program does other things than slots; ranks come late to operations */
    SLC_DISTANCE_PARTS
} slc_distance_part;

typedef struct {
    bool known;                        /* false: the parts were not found, and are 0 */
    double part_s[SLC_DISTANCE_PARTS]; /* none is negative. They add up to the plan's step minus the bound; all are 0 if
                                          the plan is below the bound */
} slc_plan_distance;

/* The reason why the search of a planner ended. */
typedef enum {
    SLC_PLANNING_DONE,         /* it had nothing left to try, or did not search */
    SLC_PLANNING_TRIVIAL,      /* there was nothing to choose */
    SLC_PLANNING_PAYS_NO_MORE, /* the steps that are left could not win back what further planning costs */
    SLC_PLANNING_EFFORT,       /* its effort was spent */
    SLC_PLANNING_TIME_LIMIT    /* its time was up, so the plan depends on the machine, and may differ next time */
} slc_planning_end;

/* The word that stands for an end in JSON. */
static inline const char *slc_planning_end_name(slc_planning_end end)
{
    static const char *const names[] = {"done", "trivial", "pays_no_more", "effort", "time_limit"};
    return names[end];
}

/* The name of a part, in tables and as a key of JSON. */
static inline const char *slc_distance_part_name(slc_distance_part part)
{
    static const char *const names[SLC_DISTANCE_PARTS] = {"unproven", "choices", "blocks", "order",
                                                          "latency",  "packing", "outside"};
    return names[part];
}
