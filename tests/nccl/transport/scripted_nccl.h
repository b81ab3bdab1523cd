/* Private to tests/nccl/transport: what was called of scripted_nccl.c, which exports it as script_counted. */
#pragma once

typedef struct {
    int blocking; /* of the last communicator's config */
    int groups_begun, groups_ended, calls;
    int finalized, destroyed, aborted;
} script_counts;

extern script_counts script_counted;
