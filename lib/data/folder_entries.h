/* What lies in a folder, in the order of the names' bytes, the same in every locale; names that begin with '.' are
 * passed over. Private to lib/data. */
#ifndef SLC_DATA_FOLDER_ENTRIES_H
#define SLC_DATA_FOLDER_ENTRIES_H

#include <sluice/status.h>
#include <stdbool.h>
#include <sys/stat.h>

/* `path` is the folder's, '/' and the name, and the visitor's only during the call. */
typedef sluice_status (*slc_folder_visit)(void *context, const char *path, const struct stat *info);

/* Each entry to `visit`, until one fails: its status. `follow`: of a link, what it leads to. Errors: IO. */
sluice_status slc_folder_each(const char *path, bool follow, slc_folder_visit visit, void *context);

#endif
