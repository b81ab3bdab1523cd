/* The folder of a sweep's results: its name, and the lock that keeps two sweeps from writing into it at
 * once. One thread. */
#pragma once

#include <sluice/status.h>
#include <stddef.h>

enum { SLC_FOLDER_BYTES = 4096 };

/* Writes the path of a file in the folder, into SLC_FOLDER_BYTES. Errors: ARGUMENT (it is too long). */
sluice_status slc_folder_path(const char *folder, const char *name, char *path);

/* Writes the name of a folder that no --output gave: out/bench/DATE-WHAT, of today, and with -NUMBER from number 2 on.
 * Errors: ARGUMENT (it is too long). */
sluice_status slc_folder_name(const char *what, unsigned number, char *folder);

/* Locks the folder for as long as this process or a program that it starts lives. Waits a few seconds for a sweep that
 * is about to end, as one that was killed is. If the file system has no locks, a warning is logged. Errors: ARGUMENT
 * (another sweep has it), PATH, IO. */
sluice_status slc_folder_lock(const char *folder);

/* Removes what a sweep that was killed has left half written, and that nobody writes any more. */
void slc_folder_clean(const char *folder);
