/* A draft: a new file beside its target, which takes the target's name when all of it is on the disk. Its name is
 * drawn, and it is made only if nothing has that name, links included. So two jobs with one target do not write into
 * one file, and nothing that others have made is opened, emptied or removed; the target is replaced as a whole, and
 * if it is a link, the link is. A draft belongs to one thread. */
#pragma once

#include <sluice/status.h>

typedef struct {
    char *path; /* of the draft; NULL: there is none */
    int fd;     /* open for reading and writing; whoever closes it sets it to -1 */
} slc_draft;

#define SLC_DRAFT_NONE ((slc_draft){.fd = -1})

/* Makes a draft of `target`; with permissions as the process makes files (umask). Errors name the target: PATH (its
 * folder is not there or cannot be written), IO, MEMORY. On failure *draft is SLC_DRAFT_NONE. */
sluice_status slc_draft_open(const char *target, slc_draft *draft);

/* Gives the draft the target's name. The caller has written all of it, to the disk too, and closed the descriptor or
 * not. Afterwards *draft is SLC_DRAFT_NONE, and after an error no draft is left. Errors: PATH, IO. */
sluice_status slc_draft_keep(slc_draft *draft, const char *target);

/* Removes the draft; the target stays as it is. SLC_DRAFT_NONE is allowed. */
void slc_draft_drop(slc_draft *draft);
