/* The units of a job by the layers that use them. */
#pragma once

#include "lib/plan/job.h"

typedef struct {
    uint32_t *units; /* those of layer l, ascending and each once, are units[first[l]] to units[first[l + 1] - 1] */
    uint32_t *first; /* [L + 1]; NULL: nothing is listed */
} slc_layer_users;

/* Lists the units. false: no memory, and nothing is listed. */
bool slc_layer_users_init(slc_layer_users *out, const slc_job *job);
void slc_layer_users_fini(slc_layer_users *users);
