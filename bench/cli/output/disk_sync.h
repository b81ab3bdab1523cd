/* Makes sure that files that grow reach the disk: a thread syncs the files that were written to, within a time that its
 * maker chooses, so that neither a writer nor a long step waits for a disk, and a machine that loses its power loses no
 * more than that time. All calls come from one thread. */
#pragma once

#include <sluice/status.h>

typedef struct slc_disk_sync slc_disk_sync;

enum { SLC_DISK_SYNC_FILES = 8 };

/* Starts the thread. Bytes are on the disk at most `within_s` seconds after they were written, plus the time that the
 * disk itself takes. Errors: MEMORY, SYSTEM (no thread). */
sluice_status slc_disk_sync_start(double within_s, slc_disk_sync **out);

/* Adds an open file, SLC_DISK_SYNC_FILES at most, which stays open until slc_disk_sync_end. */
void slc_disk_sync_add(slc_disk_sync *sync, int file);

/* Says that something was written; costs less than a microsecond. NULL is allowed. */
void slc_disk_sync_soon(slc_disk_sync *sync);

/* Syncs all files a last time and ends the thread; *sync is NULL afterwards, and NULL is allowed. Returns 0, or the
 * errno of the first sync that failed, also one of the thread's. */
int slc_disk_sync_end(slc_disk_sync **sync);
