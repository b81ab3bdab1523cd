/* The model as a mixed integer program of GLPK: the meaning of its columns and rows. */
#pragma once

#include "ilp/parts/slot_parts.h"

#include <glpk.h>

#define SLC_GLPK_TEXT(x) #x
#define SLC_GLPK_NUMBER(x) SLC_GLPK_TEXT(x)
#define SLC_GLPK_VERSION SLC_GLPK_NUMBER(GLP_MAJOR_VERSION) "." SLC_GLPK_NUMBER(GLP_MINOR_VERSION)

/* A column: the fraction of a family that moves at a position. If one micro-batch represents several, a flow that
 * reaches over its border does so at each of them: `twin` is the same family of the neighbouring micro-batch. */
typedef struct {
    uint32_t family, position;
    uint32_t twin, twin_position; /* twin == SLC_NONE: there is none */
    double cost;                  /* in the program's units, without the tie-breaking term */
} slc_flow_column;

typedef struct {
    const slc_slot_model_parts *parts;
    glp_prob *lp;
    uint32_t *unit_group;  /* [units] the unit whose choice this one shares: itself or an equal one before it */
    uint32_t *layer_group; /* [L] the layer whose recomputation this one shares */
    int *choice;           /* [units * SLC_STRATEGIES] column; 0: not an option */
    int *recompute_column; /* [L] column of recomputation; 0: not free to choose */
    slc_flow_column *flows;
    int flow_count, first_flow;               /* flow i is column first_flow + i */
    int first_level;                          /* columns: bytes in each half row */
    int first_evaluated, first_evaluated_row; /* the same for the slots of evaluation in parts->evaluated */
    int first_busy, first_link_row;     /* with two lanes, for each busy place from parts->first_place on: a column, how
                                           long the longer lane is busy; and rows that make it at least as long as the link
                                           is, then rows for the thread */
    int first_agreement, agreement_row; /* columns: the fractions of the agreement in each slot, and last the exposed
                                           one; the row in which they add up to 1; 0: it is not placed */
    int first_slot_row, first_family_row, first_memory_row; /* choice rows are those from 1 on, one for each unit */
    double time_unit, byte_unit;                            /* seconds and bytes of one unit in the program */
    double fixed_s;                                         /* seconds of the step that no column costs */
    double preference_s;             /* seconds that the tie-breaking term adds to the objective at most */
    struct slc_program_maker *maker; /* only while the program is made */
} slc_slot_program;

/* Makes the program. `tie`: groups of at most so many neighbours (1: none). `preference`: with the tie-breaking term,
 * which draws reductions and gathers to their needs. Call within slc_glpk_run. Errors: MEMORY. */
sluice_status slc_slot_program_init(slc_slot_program *program, const slc_slot_model_parts *parts, uint32_t tie,
                                    bool preference);
/* Called after slc_glpk_run, with which `lp` has ended. */
void slc_slot_program_fini(slc_slot_program *program);

/* Group neighbours that share their choice (ties.c). */
void slc_tie_units(const slc_slot_model_parts *parts, uint32_t tie, uint32_t *group);
void slc_tie_layers(const slc_slot_model_parts *parts, uint32_t tie, uint32_t *group);
uint32_t slc_tie_by_size(const slc_slot_model_parts *parts);

/* Runs a function that calls GLPK in a thread of its own and waits for it, with terminal output off and the solver's
 * messages kept. All of GLPK's objects end with the run; those of other threads, and their hooks, are not touched. If
 * GLPK gives up in the middle, `run` does not return: the status is FORMAT with its message, and what `run` had
 * allocated must be found through `context`. `cancel` (NULL: none) is asked on that thread whenever the solver prints;
 * if it says so, the same happens with INTERRUPTED. Not nested. Errors: run's own; SYSTEM (no thread); UNSUPPORTED (a
 * GLPK without thread-local storage). */
sluice_status slc_glpk_run(sluice_status (*run)(void *), void *context, const slc_cancel *cancel);
