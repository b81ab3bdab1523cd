/* Looks for the checkpoint before a damaged one. Rank files are not read here: whoever goes on from it checks them.
 * tests/checkpoint/resume_test.sh covers this file. */
#include "bench/train/checkpoint/earlier_checkpoint.h"

#include "lib/base/error_line.h"
#include "lib/base/status.h"
#include "lib/base/text/shell_word.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <sluice/checkpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The step of a checkpoint's folder, by its name; -1: it is none. */
static int64_t step_of(const char *name)
{
    char *end;
    if (strncmp(name, "step-", 5) || name[5] < '0' || name[5] > '9') return -1;
    long long step = strtoll(name + 5, &end, 10);
    return *end ? -1 : step;
}

static int is_checkpoint(const struct dirent *entry)
{
    return step_of(entry->d_name) >= 0;
}

static int latest_first(const struct dirent **a, const struct dirent **b)
{
    int64_t x = step_of((*a)->d_name), y = step_of((*b)->d_name);
    return (x < y) - (x > y);
}

/* Splits PATH/ or PATH/step-000004 into the folder of checkpoints and the step of the one that is damaged. */
static bool find_place(const char *resume, char folder[PATH_MAX], uint64_t *step)
{
    bool found = false;
    if (snprintf(folder, PATH_MAX, "%s", resume) >= PATH_MAX) return false;
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') folder[--length] = 0;
    char *slash = strrchr(folder, '/'), *name = slash ? slash + 1 : folder;
    if (step_of(name) < 0) return !sluice_checkpoint_latest(folder, &found, step) && found;
    *step = (uint64_t)step_of(name);
    if (slash)
        *slash = 0;
    else
        strcpy(folder, ".");
    return true;
}

static bool can_be_read(const char *checkpoint)
{
    void *extra = NULL;
    size_t bytes;
    bool whole = !sluice_checkpoint_extra(checkpoint, &extra, &bytes);
    free(extra);
    return whole;
}

/* *found is the latest readable checkpoint before `step`. */
static bool find_earlier(const char *folder, uint64_t step, char found[PATH_MAX])
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_checkpoint, latest_first);
    bool done = false;
    for (int i = 0; i < count; i++) {
        if (!done && (uint64_t)step_of(entries[i]->d_name) < step)
            done = snprintf(found, PATH_MAX, "%s/%s", folder, entries[i]->d_name) < PATH_MAX && can_be_read(found);
        free(entries[i]);
    }
    free(entries);
    return done;
}

sluice_status slc_training_name_earlier(sluice_status status, const char *resume)
{
    char why[SLC_ERROR_BYTES], folder[PATH_MAX], found[PATH_MAX];
    uint64_t step = 0;
    if (status != SLUICE_ERR_FORMAT && status != SLUICE_ERR_IO && status != SLUICE_ERR_PATH) return status;
    snprintf(why, sizeof why, "%s", sluice_last_error());
    if (!find_place(resume, folder, &step) || !find_earlier(folder, step, found)) return slc_error(status, "%s", why);
    return slc_error(status, "%s; the checkpoint before it is %s: give --resume %s, or remove %s/step-%06" PRIu64, why,
                     found, slc_shell_word_of(found).text, folder, step);
}
