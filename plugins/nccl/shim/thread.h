/* The state of the calling thread. Private to plugins/nccl/shim. */
#pragma once

#include <stdint.h>

typedef struct slc_shim_group_streams slc_shim_group_streams; /* measure.c */

/* One thread's state; all zero at its beginning. */
typedef struct {
    const struct slc_shim_recorder *recorder; /* that the numbers below belong to */
    const struct slc_shim_real *inside; /* while a call of ours runs in it: what arrives then is NCCL's own call */
    unsigned depth;                     /* of groups */
    unsigned number;                    /* of the thread, from 1; 0: not known, or too large */
    uint32_t group;                     /* number of the outermost group */
    uint32_t libraries;              /* a bit for each library but the default one in which the group was begun too */
    uint64_t group_first;            /* an index not above those of the group's entries */
    struct slc_shim_comm *pending;   /* communicators that the group makes */
    slc_shim_group_streams *streams; /* that the group uses, to be measured */
    void *transforms;                /* what transforms hold until the group ends */
} slc_shim_thread;

slc_shim_thread *slc_shim_this_thread(void);
