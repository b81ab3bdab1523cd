/* Counts the work of planning. A planner's limits are counts of what it does, each kind priced at a fixed nominal cost
 * in seconds, and not the time that passes. So equal input gives the equal plan on every machine, busy or idle. A
 * nominal second is about a second of one core of the machine on which the prices were fitted (work.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    SLC_WORK_PIVOT,      /* an iteration of the simplex method */
    SLC_WORK_PIVOT_ROW,  /* a row of the program, in each iteration */
    SLC_WORK_MODEL_CELL, /* a non-zero of a program that is set up */
    SLC_WORK_NODE_ROW,   /* a row of the program, in each node of branch and bound */
    SLC_WORK_ITEM,       /* an item of an order that becomes a plan: its buffers and lives */
    SLC_WORK_ORDERED, /* a pair of a slot and a unit that a scheduler looks at, beyond those that an item's price holds
                       */
    SLC_WORK_LIFE,    /* a life or a moment that is handed to the packer, which tells equal moments apart */
    SLC_WORK_PLACED,  /* a life or a moment of a plan whose buffers keep their places */
    SLC_WORK_PACKED,  /* a life or a pair of lives that the packer looks at */
    SLC_WORK_WAIT,    /* an item or a claim whose waits are found */
    SLC_WORK_SIMULATED, /* an item of a simulated pass */
    SLC_WORK_CHECKED,   /* an item or a claim that the validator looks at */
    SLC_WORK_KINDS
} slc_work_kind;

typedef struct {
    double spent_s;      /* nominal seconds */
    uint64_t ceiling_ns; /* in slc_clock_ns: work ends then, whatever is left; 0: it does not */
    bool cut;            /* the ceiling has ended something, so the result depends on the machine */
} slc_work;

/* Nominal seconds of one piece of work. */
double slc_work_price(slc_work_kind kind);

/* Counts `amount` pieces of work; `work` NULL: nobody counts. */
void slc_work_add(slc_work *work, slc_work_kind kind, double amount);

/* Returns true if `until_s` nominal seconds are spent, or the ceiling is reached; false if `work` is NULL. */
bool slc_work_is_over(slc_work *work, double until_s);

/* Seconds until the ceiling; INFINITY: there is none. */
double slc_work_ceiling_left_s(const slc_work *work);
