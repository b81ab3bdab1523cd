/* One job at a time saves to a folder: rank 0 holds a lock on DIR/.lock from the first save (or the check before the
 * first step) until its runtime is destroyed. The system releases it when the process ends, however it ends, on NFS
 * too. Private to lib/engine and bench/train. Local calls, any thread. */
#pragma once

#include <sluice/status.h>

/* Takes the lock of `dir`, which exists; `owner` may hold it already. Errors: PATH (no permission), IO (another job
 * holds it, named by host, process and since when), MEMORY. Warns of a file system that has no locks, where only a
 * process of the same host is noticed. */
sluice_status slc_checkpoint_lock_take(const void *owner, const char *dir);
/* Releases all locks that `owner` holds. */
void slc_checkpoint_lock_release(const void *owner);
