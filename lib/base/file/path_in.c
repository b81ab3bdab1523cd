/* slc_path_in joins a folder and a name by a slash. */
#include "lib/base/file/path_in.h"

#include "lib/base/status.h"

#include <stdio.h>

sluice_status slc_path_in(const char *folder, const char *name, char path[PATH_MAX])
{
    const int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    if (length >= 0 && length < PATH_MAX) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "the path of \"%.80s\" is too long in the folder %.80s[...]: a path has %d bytes at most", name,
                     folder, PATH_MAX - 1);
}
