/* Names on the disk. A file that is synchronized can still be lost with its name: a name that was made, moved or
 * removed in a folder survives a loss of power only once the folder is synchronized. It is no error where a file system
 * cannot do that, is read-only, or lets nobody read the folder. Any thread. */
#pragma once

#include <sluice/status.h>

/* Synchronizes the folder. Errors name it: PATH, IO. */
sluice_status slc_sync_folder(const char *path);

/* Synchronizes the folder that holds the path's last name. Errors: as above; MEMORY. */
sluice_status slc_sync_parent(const char *path);
