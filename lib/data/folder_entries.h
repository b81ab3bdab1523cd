/* Lists the entries of a folder in the order of their names' bytes, which is the same in every locale. Names that begin
 * with '.' are passed over. Private to lib/data. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>
#include <sys/stat.h>

/* `path` is the folder's path, '/' and the entry's name; it is valid only during the call. */
typedef sluice_status (*slc_folder_visit)(void *context, const char *path, const struct stat *info);

/* Calls `visit` for each entry until a call fails, and returns its status. `follow`: for a link, `info` describes the
 * file that it leads to. Errors: PATH, IO, those of `visit`. */
sluice_status slc_folder_each(const char *path, bool follow, slc_folder_visit visit, void *context);
