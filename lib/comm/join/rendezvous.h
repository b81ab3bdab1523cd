/* How ranks find each other: rank 0 listens on MASTER_ADDR:MASTER_PORT, everyone else connects and says who it is. The
 * connections stay open; control.h takes them over for heartbeats and small collectives. */
#ifndef SLC_COMM_RENDEZVOUS_H
#define SLC_COMM_RENDEZVOUS_H

#include <sluice/status.h>
#include <sluice/world.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int rank, size;
    int *fds; /* [size], non-blocking; rank 0: one for every other rank; others: only fds[0]; else -1 */
    uint64_t deadline_ns;
} slc_rendezvous;

/* Blocking. Errors: TIMEOUT names the ranks that are missing; MISMATCH: another version, size or token, or two
 * processes of one rank; PEER: a rank died meanwhile. Strangers (bad magic, bad token) are turned away. */
sluice_status slc_rendezvous_join(const sluice_world_config *config, slc_rendezvous *out);

/* Blocking, collective: every rank brings a blob and gets all of them, in rank order: blobs[r], sizes[r]. A rank that
 * failed brings its `status` (and error line) instead: then every rank gets that failure. Free *memory after use. */
sluice_status slc_rendezvous_exchange(slc_rendezvous *rendezvous, sluice_status status, const void *blob, size_t bytes,
                                      const void **blobs, size_t *sizes, void **memory);

void slc_rendezvous_leave(slc_rendezvous *rendezvous); /* closes what is open */

#endif
