/* Keeps the one list of the errnos for which a path is to blame. */
#include "lib/base/file/path_error.h"

#include "lib/base/status.h"

#include <errno.h>
#include <string.h>

sluice_status slc_path_status(int why)
{
    switch (why) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case ENAMETOOLONG:
    case ELOOP:
    case EROFS:
    case EEXIST: return SLUICE_ERR_PATH;
    default: return SLUICE_ERR_IO;
    }
}

sluice_status slc_path_error(const char *what, const char *path, int why)
{
    return slc_error(slc_path_status(why), "%s %s: %s", what, path, strerror(why));
}

sluice_status slc_path_was_good(sluice_status status)
{
    return status == SLUICE_ERR_PATH ? slc_error(SLUICE_ERR_IO, "%s", sluice_last_error()) : status;
}
