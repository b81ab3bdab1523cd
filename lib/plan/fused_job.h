/* A job with some of its units fused, beside the one it was made from: to plan and simulate both. */
#ifndef SLC_PLAN_FUSED_JOB_H
#define SLC_PLAN_FUSED_JOB_H

#include "lib/plan/job.h"

#include <sluice/status.h>

typedef struct {
    slc_job job;        /* everything but its units belongs to the one it was made from, which must outlive it */
    uint32_t *unit_of;  /* of each unit of that one: its number here */
    uint32_t *first_of; /* of each unit here: the first of those it is made of */
} slc_fused_job;

/* `group` as slc_fuse_function gives it. A fused unit uses its layers' values from the first to the last of them that
 * needs them in backward, so one gather covers a direction; it is as long as its parts, padding included, in base
 * blocks of the first; its tensors are exchanged together. Errors: MEMORY; ARGUMENT (no group of units that follow each
 * other's layers). */
sluice_status slc_fused_job_init(const slc_job *job, const uint32_t *group, slc_fused_job *out);
void slc_fused_job_fini(slc_fused_job *fused);

/* May two units be parts of one, `after` the unit of the next layer? Trainable both, of one type and one length of
 * blocks; not what is split by its uses. */
bool slc_units_join(const slc_unit *unit, const slc_unit *after);

/* Of a fused unit: "FIRST..LAST", malloc'ed. NULL: no memory. */
char *slc_fused_name(const char *first, const char *last);

/* Values that are needed in the backward of two layers stay between them, so that their window is one. */
void slc_fused_uses_close(slc_unit *unit);

#endif
