/* An outcome gathers the errors of several outputs. Each output is written even if another one has failed. */
#ifndef SLC_BENCH_OUTCOME_H
#define SLC_BENCH_OUTCOME_H

#include <sluice/status.h>

typedef struct {
    sluice_status status; /* of the first that failed */
    char why[2048];       /* the lines of all that did */
} slc_outcome;

/* Begin with {0}. Where `status` is an error its line is sluice_last_error(). */
void slc_outcome_add(slc_outcome *outcome, sluice_status status);
/* The first error with the lines of all as the last error, or SLUICE_OK. */
sluice_status slc_outcome_status(const slc_outcome *outcome);

#endif
