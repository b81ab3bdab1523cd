/* One job at a time saves to a folder: rank 0 holds a lock on DIR/.lock from the first save (or the look before the
 * first step) until its runtime goes. The system gives it back when the process ends, however it ends, on NFS too.
 * Private to lib/engine. Local calls, any thread. */
#ifndef SLC_ENGINE_CHECKPOINT_LOCK_H
#define SLC_ENGINE_CHECKPOINT_LOCK_H

#include <sluice/status.h>

/* `dir` is there; `owner` may hold it already. Errors: IO (another job holds it, named by host, process and since when;
 * no permission), MEMORY. A file system that has no locks is warned about: there only a process of the same host is
 * noticed. */
sluice_status slc_checkpoint_lock_take(const void *owner, const char *dir);
/* All that `owner` holds. */
void slc_checkpoint_lock_release(const void *owner);

#endif
