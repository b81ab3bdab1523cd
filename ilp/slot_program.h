/* The model as a mixed integer program of GLPK: which column and row is what. */
#ifndef SLC_SLOT_PROGRAM_H
#define SLC_SLOT_PROGRAM_H

#include "ilp/slot_parts.h"

#include <glpk.h>

#define SLC_GLPK_TEXT(x) #x
#define SLC_GLPK_NUMBER(x) SLC_GLPK_TEXT(x)
#define SLC_GLPK_VERSION SLC_GLPK_NUMBER(GLP_MAJOR_VERSION) "." SLC_GLPK_NUMBER(GLP_MINOR_VERSION)

/* A column: a fraction of a stream moved at a position. Where one micro-batch stands for several, what reaches over its
 * edge does so at each of them: `twin` is the same stream of the neighbouring micro-batch. */
typedef struct {
    uint32_t stream, position;
    uint32_t twin, twin_position; /* twin == SLC_NONE: none */
    double cost;                  /* in the program's units, without the tie-breaking term */
} slc_flow_column;

typedef struct {
    const slc_slot_model_parts *parts;
    glp_prob *lp;
    uint32_t *unit_group;  /* [units] the unit whose choice it shares: itself or an equal one before it */
    uint32_t *layer_group; /* [L] the same for recomputation */
    int *choice;           /* [units * SLC_STRATEGIES] column, 0: not an option */
    int *again;            /* [L] column of recomputation, 0: not free */
    slc_flow_column *flows;
    int flow_count, first_flow;     /* flow i is column first_flow + i */
    int first_level;                /* columns: bytes in each half row */
    int first_busy, first_link_row; /* with two lanes, of each busy place from parts->first_place on: a column, how long
                                       either lane is busy; and rows, at least as long as the link is, then all those
                                       of the thread */
    int first_stream_row, first_memory_row; /* and choice rows from 1 on, one for each unit */
    double time_unit, byte_unit;            /* seconds and bytes of one in the program */
    double fixed_s;                         /* of the step, apart from what columns cost */
    double preference_s;                    /* what the tie-breaking term adds to the objective at most */
    struct slc_program_maker *maker;        /* while the program is made */
} slc_slot_program;

/* `tie`: groups of at most that many neighbours (1: none). `preference`: with the tie-breaking term, which draws
 * reductions and gathers to their needs. Call within slc_glpk_run. Errors: MEMORY. */
sluice_status slc_slot_program_init(slc_slot_program *program, const slc_slot_model_parts *parts, uint32_t tie,
                                    bool preference);
/* After slc_glpk_run, with which `lp` has ended. */
void slc_slot_program_fini(slc_slot_program *program);

/* Groups of neighbours that share their choice (ties.c). */
void slc_tie_units(const slc_slot_model_parts *parts, uint32_t tie, uint32_t *group);
void slc_tie_layers(const slc_slot_model_parts *parts, uint32_t tie, uint32_t *group);
uint32_t slc_tie_by_size(const slc_slot_model_parts *parts);

/* Runs something that calls GLPK in a thread of its own and waits for it: terminal output off, the solver's words kept.
 * All of GLPK's objects end with the run; those of other threads, and their hooks, are not touched. When GLPK gives up
 * in the middle, `run` does not come back: the status is FORMAT with those words, and what `run` had allocated must be
 * found through `context`. `cancel` (NULL: none) is asked while the solver talks, on that thread; then the same happens,
 * with INTERRUPTED. Errors: run's own; SYSTEM (no thread); UNSUPPORTED (a GLPK without thread-local storage). */
sluice_status slc_glpk_run(sluice_status (*run)(void *), void *context, const slc_cancel *cancel);

#endif
