/* A job with some of its units fused, next to the job it was made from, so that both can be planned and simulated. */
#pragma once

#include "lib/plan/job.h"

#include <sluice/status.h>

typedef struct {
    slc_job job;        /* everything but the units belongs to the original job, which must outlive this one */
    uint32_t *unit_of;  /* for each unit of the original job, its number in `job` */
    uint32_t *first_of; /* for each unit of `job`, the first original unit that it is made of */
} slc_fused_job;

/* Makes the fused job; `group` is what slc_fuse_function gives. A fused unit needs its values in backward from the
 * first to the last of its layers that needs them, so one gather serves a direction. It is as long as its parts with
 * their padding, in base blocks as long as those of its first part; its tensors are exchanged together. Errors: MEMORY;
 * ARGUMENT (a group is not made of units whose layers follow each other). */
sluice_status slc_fused_job_init(const slc_job *job, const uint32_t *group, slc_fused_job *out);
void slc_fused_job_fini(slc_fused_job *fused);

/* Returns true if two units may be parts of one, where `after` belongs to the next layer. Both must be trainable, of
 * one type and one length of blocks, and neither may be split by its uses. */
bool slc_units_join(const slc_unit *unit, const slc_unit *after);

/* Returns a fused unit's name, "FIRST..LAST", which the caller frees. NULL: no memory. */
char *slc_fused_name(const char *first, const char *last);

/* Marks values as needed in backward in all layers between two that need them, so that backward has one window. */
void slc_fused_uses_close(slc_unit *unit);
