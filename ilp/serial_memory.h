/* The memory rows when nothing overlaps: every reduction right behind its gradient, every gather right before its use.
 * No other placing holds less in any half row, so choices of strategies and recomputation are possible within a limit
 * exactly when these rows are. */
#ifndef SLC_SERIAL_MEMORY_H
#define SLC_SERIAL_MEMORY_H

#include "ilp/slot_parts.h"

typedef struct {
    slc_strategy *strategies; /* [units] */
    bool *recompute;          /* [L] */
} slc_slot_choice;

typedef struct {
    const slc_slot_model_parts *parts;
    uint32_t rows;  /* half rows, and one for reading parameters between steps */
    double *fixed;  /* [rows] */
    double **unit;  /* [units * SLC_STRATEGIES] its rows under a strategy; NULL: not an option */
    double **layer; /* [L] what recomputing frees; NULL: not free */
    double *cells;
} slc_serial_memory;

sluice_status slc_serial_memory_init(slc_serial_memory *memory, const slc_slot_model_parts *parts);
void slc_serial_memory_fini(slc_serial_memory *memory);

sluice_status slc_slot_choice_init(slc_slot_choice *choice, const slc_job *job);
void slc_slot_choice_copy(slc_slot_choice *to, const slc_slot_choice *from, const slc_job *job);
void slc_slot_choice_fini(slc_slot_choice *choice);

/* The largest row of a choice; `rows` [memory->rows] holds them all afterwards. */
double slc_serial_peak(const slc_serial_memory *memory, const slc_slot_choice *choice, double *rows);

/* What a choice takes of the step's time when nothing overlaps. */
double slc_serial_seconds(const slc_slot_model_parts *parts, const slc_slot_choice *choice);

/* The choice of which one would guess so: of each unit the option that keeps least for good, every layer recomputing.
 */
void slc_least_memory_guess(const slc_serial_memory *memory, slc_slot_choice *choice);

/* The choice of least memory, by GLPK (call within slc_glpk_run). `time_limit_s` <= 0: none; then *proven is true. It
 * ends early, as when time is up, where `cancel` (NULL: none) wants it. *work, NULL before, is what it works with: the
 * caller destroys it, also where the solver gave up in between. */
struct slc_least_memory;
sluice_status slc_least_memory_choice(const slc_serial_memory *memory, double time_limit_s, const slc_cancel *cancel,
                                      slc_slot_choice *choice, bool *proven, struct slc_least_memory **work);
void slc_least_memory_destroy(struct slc_least_memory *work); /* NULL is allowed */

#endif
