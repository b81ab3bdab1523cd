/* The time at which a run must have saved and left: --stop-after, or the end of Slurm's job. After each step the run
 * asks whether another one and a save still fit; a rank asks by its own clock, and all stop if one of them must. One
 * thread. */
#pragma once

#include "bench/train/options/options.h"

#include <stdbool.h>
#include <time.h>

enum { SLC_DEADLINE_STEPS = 8 };

typedef struct {
    uint64_t end_ns;                    /* on slc_clock_ns; UINT64_MAX: never */
    char why[80];                       /* the option or variable that says so, with its value */
    const char *unreadable;             /* SLURM_JOB_END_TIME, if it is no time; else NULL */
    double steps_s[SLC_DEADLINE_STEPS]; /* the last steps, each with what came between it and the one before */
    double save_s;                      /* the longest save; a guess before the first one */
    uint64_t steps, saves;              /* how many there were */
    uint64_t since_ns;                  /* the end of the last step or save */
} slc_training_deadline;

/* `begun_ns` is when the process began, on slc_clock_ns, and `wall` the time of day. The end of Slurm's job counts
 * if there is a folder to save to. Errors: ARGUMENT (--stop-after is no time). */
sluice_status slc_deadline_find(const slc_training_options *options, uint64_t begun_ns, time_t wall,
                                slc_training_deadline *out);

/* Begins to count, before the first step. A save is first taken to write `bytes` at a slow disk's pace. */
void slc_deadline_begin(slc_training_deadline *deadline, uint64_t now_ns, uint64_t bytes);

/* Returns, after a step, whether the run must stop here, so that its save and its end come in time. */
bool slc_deadline_after_step(slc_training_deadline *deadline, uint64_t now_ns);

/* Called after a save that began at `from_ns`. */
void slc_deadline_after_save(slc_training_deadline *deadline, uint64_t from_ns, uint64_t now_ns);
