/* A draft is a profile while it is put together layer by layer. It holds the job and its times in arrays with room for
 * what a model of so many layers needs; the profile is then copied from it. */
#pragma once

#include "lib/plan/profile.h"

enum { SLC_DRAFT_NAME_BYTES = 32 };

typedef struct {
    slc_job job;
    slc_times times;
    char (*names)[SLC_DRAFT_NAME_BYTES]; /* [2 layers] for the job's names to point to */
    bool *can_recompute;                 /* [layers] the job's */
    slc_use *uses;                       /* [layers + 2] for the units to point to */
    uint64_t *parameters, *block_bytes;  /* of each unit */
} slc_profile_draft;

/* Everything begins as 0. The job has `layers` layers, room for 2 units more than that, for 3 activations and 2
 * workspaces of each layer, and for 2 activations more. slc_profile_draft_fini frees it, also after an error. Errors:
 * MEMORY. */
sluice_status slc_profile_draft_init(slc_profile_draft *draft, uint32_t layers);
void slc_profile_draft_fini(slc_profile_draft *draft);

/* Adds a trainable unit in fp32; its name and uses are kept by pointer. The job's world must be set. */
slc_unit *slc_profile_draft_unit(slc_profile_draft *draft, const char *name, uint64_t parameters, uint64_t block_bytes,
                                 slc_use *uses, uint32_t use_count);
void slc_profile_draft_activation(slc_profile_draft *draft, slc_activation_life life);

/* Makes the profile, which the caller destroys. Errors: as slc_profile_create. */
sluice_status slc_profile_draft_finish(const slc_profile_draft *draft, const char *model, const char *source,
                                       slc_profile **out);
