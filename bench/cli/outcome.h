/* An outcome gathers the errors of several outputs. Each output is written even if another one has failed. */
#pragma once

#include <sluice/status.h>

typedef struct {
    sluice_status status; /* that of the first output that failed */
    char why[2048];       /* the error lines of all that failed */
} slc_outcome;

/* Adds a status and, if it is an error, the line of sluice_last_error. An outcome begins as {0}. */
void slc_outcome_add(slc_outcome *outcome, sluice_status status);
/* Returns the first error, and sets the last error to the lines of all; or SLUICE_OK. */
sluice_status slc_outcome_status(const slc_outcome *outcome);
