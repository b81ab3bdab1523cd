/* Folders for what a program is about to write. Any thread. */
#pragma once

#include <sluice/status.h>

/* Makes the folder and those that it lies in, if they are not there; those that it made survive a loss of power. Errors
 * name the path: PATH, IO (a part of it is no folder, or may not be made), MEMORY. */
sluice_status slc_make_folder(const char *path);

/* Makes the folder as slc_make_folder does, and finds out whether files can be made in it: else a run would learn it
 * only after hours, when it writes there. */
sluice_status slc_make_writable_folder(const char *path);
