/* The memory rows when nothing overlaps: every reduction right after its gradient is complete, every gather right
 * before its use. No other placement holds less in any half row, so choices of strategies and recomputation are
 * possible within a limit exactly if these rows are. */
#pragma once

#include "ilp/parts/slot_parts.h"

typedef struct {
    slc_strategy *strategies; /* [units] */
    bool *recompute;          /* [L] */
} slc_slot_choice;

typedef struct {
    const slc_slot_model_parts *parts;
    uint32_t rows;  /* number of half rows, one row for reading parameters between steps, and the slots of evaluation */
    double *fixed;  /* [rows] bytes that are in memory whatever is chosen */
    double **unit;  /* [units * SLC_STRATEGIES] bytes in each row under a strategy; NULL: not an option */
    double **layer; /* [L] bytes that recomputing the layer frees in each row; NULL: not free to choose */
    double *cells;
} slc_serial_memory;

sluice_status slc_serial_memory_init(slc_serial_memory *memory, const slc_slot_model_parts *parts);
void slc_serial_memory_fini(slc_serial_memory *memory);

sluice_status slc_slot_choice_init(slc_slot_choice *choice, const slc_job *job);
void slc_slot_choice_copy(slc_slot_choice *to, const slc_slot_choice *from, const slc_job *job);
void slc_slot_choice_fini(slc_slot_choice *choice);

/* Returns the largest row of a choice and fills `rows` [memory->rows] with all of them. */
double slc_serial_peak(const slc_serial_memory *memory, const slc_slot_choice *choice, double *rows);

/* Returns a lower bound of every choice's largest row: the largest row if each unit and layer had, in each row by
 * itself, the option that takes least there. `rows` [memory->rows] is scratch. */
double slc_serial_least(const slc_serial_memory *memory, double *rows);

/* Seconds that a choice adds to the step's slots when nothing overlaps. */
double slc_serial_seconds(const slc_slot_model_parts *parts, const slc_slot_choice *choice);

/* Guesses a choice of little memory: for each unit the option that keeps least for good, and every layer that may
 * recomputes. */
void slc_least_memory_guess(const slc_serial_memory *memory, slc_slot_choice *choice);

/* Finds the choice of least memory with GLPK (call within slc_glpk_run). The result is slc_least_memory_guess's choice
 * if the program would be too large, or if the effort does not even allow for setting it up. *proven becomes true if
 * the solver came to its end within the effort. *work, NULL before, becomes what the solver works with: the caller
 * destroys it, also if the solver gave up in the middle. Errors: MEMORY. */
struct slc_effort;
struct slc_least_memory;
sluice_status slc_least_memory_choice(const slc_serial_memory *memory, const struct slc_effort *effort,
                                      slc_slot_choice *choice, bool *proven, struct slc_least_memory **work);
void slc_least_memory_destroy(struct slc_least_memory *work); /* NULL is allowed */
