/* The drawn name is short and begins with a dot, so that it fits wherever the target's name does. */
#include "lib/base/file/draft.h"

#include "lib/base/file/path_error.h"
#include "lib/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { DRAWS = 100 };

/* Opens a file of a drawn name in the target's folder; returns 0 or an errno. */
static int make_file(const char *target, size_t folder, slc_draft *draft)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number) return errno;
    sprintf(draft->path, "%.*s.sluice-%016llx.part", (int)folder, target, (unsigned long long)number);
    draft->fd = open(draft->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return draft->fd < 0 ? errno : 0;
}

sluice_status slc_draft_open(const char *target, slc_draft *draft)
{
    const char *name = strrchr(target, '/');
    size_t folder = name ? (size_t)(name + 1 - target) : 0;
    *draft = SLC_DRAFT_NONE;
    draft->path = malloc(folder + sizeof ".sluice-0123456789abcdef.part");
    if (!draft->path) return slc_error(SLUICE_ERR_MEMORY, "name of %s", target);
    int why = EEXIST;
    for (int i = 0; i < DRAWS && (why == EEXIST || why == EINTR); i++) why = make_file(target, folder, draft);
    if (!why) return SLUICE_OK;
    free(draft->path);
    *draft = SLC_DRAFT_NONE;
    return slc_path_error("cannot write", target, why);
}

sluice_status slc_draft_keep(slc_draft *draft, const char *target)
{
    int why = 0;
    if (draft->fd >= 0 && close(draft->fd) && errno != EINTR) why = errno;
    draft->fd = -1;
    if (!why && rename(draft->path, target)) why = errno;
    if (why)
        slc_draft_drop(draft);
    else
        free(draft->path);
    *draft = SLC_DRAFT_NONE;
    return why ? slc_path_error("cannot write", target, why) : SLUICE_OK;
}

void slc_draft_drop(slc_draft *draft)
{
    if (draft->fd >= 0) close(draft->fd);
    if (draft->path) unlink(draft->path);
    free(draft->path);
    *draft = SLC_DRAFT_NONE;
}
