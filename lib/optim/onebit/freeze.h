/* 1-bit Adam and 1-bit LAMB freeze the variance at a given step, or when the variance's norm has settled. The
 * caller's thread writes the progress, and updates of steps before and after the freeze read it, so a step's phase
 * depends only on its number and on the freeze. */
#pragma once

#include <sluice/status.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t step; /* last step of the warm-up; 0: `change` decides */
    double change; /* freeze when ||v||, bias corrected except in compat, has changed by at most this share over 1 / (1
                      - beta2) steps (1-bit Adam's paper: a ratio of .96 is .04); in (0, 1) */
    double beta2;
    bool compat; /* step 1 discards its gradient and cannot be the last of the warm-up */
} slc_freeze_settings;

typedef struct {
    slc_freeze_settings settings;
    _Atomic uint64_t frozen_at; /* last step of the warm-up; 0: not frozen */
    uint64_t norm_step;         /* step at which the criterion last looked at ||v||; 0: never */
    double norm;
    uint32_t waits_for; /* the first parameter without any variance, at the end of a step that could have frozen it;
                           UINT32_MAX: none */
} slc_freeze;

typedef enum {
    SLC_ONEBIT_DISCARD, /* compat's step 1 */
    SLC_ONEBIT_WARM_UP,
    SLC_ONEBIT_FROZEN
} slc_onebit_phase;

sluice_status slc_freeze_check(const char *name, const slc_freeze_settings *settings);

slc_onebit_phase slc_freeze_phase(const slc_freeze *freeze, uint64_t step);

/* Returns true if the freeze can come at the end of this step. */
bool slc_freeze_is_possible(const slc_freeze *freeze, uint64_t step);
/* Returns true if slc_freeze_end_step will look at the norm at the end of this step. */
bool slc_freeze_looks(const slc_freeze *freeze, uint64_t step);
/* Ends a step. variance_norms has one norm for each of `count` parameters, and is read only if slc_freeze_looks;
 * updates[p] is how many updates parameter p has had, NULL: `step`. Returns true if the variance is frozen from the
 * next step on. The freeze waits until each parameter has had an update that counts. */
bool slc_freeze_end_step(slc_freeze *freeze, uint64_t step, uint32_t count, const uint64_t *updates,
                         const double *variance_norms);

/* Notes how many updates each of `count` parameters has had at the freeze, from the array of slc_freeze_end_step. */
void slc_freeze_count(const slc_freeze *freeze, uint32_t count, const uint64_t *updates, uint64_t *frozen_updates);

/* The progress as numbers of a checkpoint. */
enum { SLC_FROZEN_AT, SLC_FREEZE_NORM_STEP, SLC_FREEZE_NORM, SLC_FREEZE_PROGRESS };
#define SLC_FREEZE_PROGRESS_NAMES "frozen_at", "norm_step", "norm"
#define SLC_FREEZE_UPDATES_NAME "frozen_updates"
void slc_freeze_save(const slc_freeze *freeze, double values[SLC_FREEZE_PROGRESS]);
/* Says whether slc_freeze_load may take these numbers of the job. Errors: ARGUMENT. */
sluice_status slc_freeze_check_progress(const char *name, const double values[SLC_FREEZE_PROGRESS]);
/* Takes the numbers that slc_freeze_check_progress has found good. If they make the freeze another one, frozen_updates
 * of all `count` parameters become the job's. */
void slc_freeze_load(slc_freeze *freeze, const double values[SLC_FREEZE_PROGRESS], uint32_t count,
                     uint64_t *frozen_updates);
/* Reads the updates at the freeze of a parameter, beside these numbers of the job. Errors: ARGUMENT. */
sluice_status slc_freeze_read_updates(const char *name, const double job[SLC_FREEZE_PROGRESS], uint32_t parameter,
                                      double value, uint64_t *frozen_updates);
