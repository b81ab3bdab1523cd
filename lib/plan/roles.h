/* The one table of what a unit's role allows and asks for; planners, schedulers, the solver and the engine read it. The
 * validator does not: it states these rules again, on purpose. */
#pragma once

#include "lib/plan/plan.h"

typedef enum { SLC_SAME_MICRO_BATCH, SLC_MICRO_BATCH_BEFORE, SLC_STEP_BEFORE } slc_partner_when;

/* An operation waits for all runs of an operation of the unit's partner. */
typedef struct {
    slc_item_kind kind, of_partner; /* SLC_ITEM_SLOT in both: no wait */
    slc_partner_when when;          /* which of the partner's operations: SAME_MICRO_BATCH is that of the same step */
} slc_partner_wait;

enum { SLC_PARTNER_WAITS = 2 };

typedef struct {
    uint8_t strategies;     /* bits 1 << slc_strategy that it may have */
    slc_strategy otherwise; /* the strategy that it gets if it may not have the one asked for */
    uint32_t late;          /* bits 1 << slc_item_kind of its operations that may be late, see slc_may_be_late */
    /* A unit of this role has no parameter, states and updates (its partner has them). It has a table of the rows that
     * one look-up touches, their gradients, which its reduction adds to the partner's sum, and the lists of those rows.
     * The rows are known only when the micro-batch before has been computed. */
    bool looks_up;
    bool partner_reads_first; /* the partner needs the updated parameter before the unit's own layers do */
    bool fuses;               /* it may be fused with units of other layers */
    slc_partner_wait waits[SLC_PARTNER_WAITS];
} slc_role_rules;

extern const slc_role_rules slc_roles[];

static inline const slc_role_rules *slc_role_of(const slc_unit *unit)
{
    return &slc_roles[unit->role];
}
static inline bool slc_looks_up(const slc_unit *unit)
{
    return slc_role_of(unit)->looks_up;
}

/* Returns true if this unit may have this strategy. A frozen unit is never onebit. */
bool slc_unit_may_be(const slc_job *job, const slc_unit *unit, slc_strategy strategy);

/* Returns the strategy of a unit for which `asked` was asked: `asked` if the unit may have it, else the one that the
 * table names. For SPLIT that is oss, which moves as many bytes as dp and keeps less. */
slc_strategy slc_unit_strategy(const slc_job *job, const slc_unit *unit, slc_strategy asked);

/* Returns true if the unit's strategy, given as `asked`, is left to the planner. SLC_STRATEGIES means that it is, but a
 * role that has only one strategy leaves no choice. */
bool slc_unit_is_free(const slc_unit *unit, slc_strategy asked);

/* Returns true if this operation may be late (slc_item.late), provided that it is of the last micro-batch. A slot or a
 * gather of a window is never late; with a barrier, neither is an operation that must come before the agreement. Among
 * the operations on split parameters only a SPLIT unit's GATHER_VALUE may be late: the gather of the ROWS unit's table,
 * early in the next pass, needs all others. */
bool slc_may_be_late(const slc_job *job, const slc_item *item);

/* Returns true if an operation of this kind must come before the agreement of its step. Reductions must, and so must
 * the operations of onebit units that tell the agreement of non-finite gradients. */
bool slc_precedes_agreement(const slc_job *job, slc_item_kind kind);

/* The wait of an operation of this kind of the unit for its partner; NULL: there is none. */
const slc_partner_wait *slc_partner_wait_of(const slc_unit *unit, slc_item_kind kind);

/* Returns true if the unit's updates are planned for the end of the step. A SPLIT unit is updated only after the
 * gradient of the look-up is reduced too, and the look-up's backward is the last slot that adds to it. So a SPLIT unit
 * is planned as every unit is under a barrier: reduced within the step, updated and gathered at its end. */
static inline bool slc_updated_last(const slc_job *job, const slc_unit *unit)
{
    return job->barrier || slc_role_of(unit)->partner_reads_first;
}

/* The unit that has the parameter which this unit's gradients belong to: itself, or for ROWS its partner. */
uint32_t slc_parameter_unit(const slc_job *job, uint32_t unit);

/* The unit that needs the updated parameter first in the next step: itself, or for SPLIT its partner. */
const slc_unit *slc_first_reader(const slc_job *job, const slc_unit *unit);

/* Returns true if any parameter is split by its uses, so that there are SPLIT and ROWS units. */
bool slc_job_splits(const slc_job *job);
