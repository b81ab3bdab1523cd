/* Lets ranks find each other: rank 0 listens on MASTER_ADDR:MASTER_PORT, and every other rank connects and says who it
 * is. The connections stay open; control.h takes them over for heartbeats and small collectives. */
#pragma once

#include <sluice/status.h>
#include <sluice/world.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int rank, size;
    int *fds; /* [size], non-blocking, -1: none; rank 0 has one for every other rank, the others have fds[0] only */
    uint64_t deadline_ns;
} slc_rendezvous;

/* Connects this rank with rank 0, or rank 0 with all others. Blocking. Errors: TIMEOUT names the ranks that are
 * missing; MISMATCH: another version, size or token, or two processes of one rank; PEER: a rank died meanwhile;
 * ARGUMENT, SYSTEM, MEMORY. Strangers (bad magic, bad token) are turned away. */
sluice_status slc_rendezvous_join(const sluice_world_config *config, slc_rendezvous *out);

/* Exchanges blobs while a world is made: every rank brings one and gets all of them, blobs[r] with sizes[r] bytes from
 * rank r. Blocking, collective. A rank that failed brings its `status` (and error line) instead, and then every rank
 * returns that failure. The blobs lie in *memory, which the caller frees. Errors: PEER, TIMEOUT, FORMAT, MEMORY. */
sluice_status slc_rendezvous_exchange(slc_rendezvous *rendezvous, sluice_status status, const void *blob, size_t bytes,
                                      const void **blobs, size_t *sizes, void **memory);

void slc_rendezvous_leave(slc_rendezvous *rendezvous); /* closes the connections that are open */
