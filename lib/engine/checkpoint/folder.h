/* The folders of checkpoints: their names, which are whole, and how a new one is made so that a crash at any point
 * leaves the old ones whole. Local calls, no ranks. Private to lib/engine. Errors: PATH, IO with path and reason,
 * MEMORY. */
#pragma once

#include <limits.h>
#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

/* A path that does not fit is cut, and is still longer than the system takes: it refuses what is left. */
typedef struct {
    char text[PATH_MAX + 64];
} slc_checkpoint_path;
slc_checkpoint_path slc_checkpoint_partial(const char *dir, uint64_t step);      /* DIR/step-000120.partial */
slc_checkpoint_path slc_checkpoint_rank_file(const char *folder, uint32_t rank); /* FOLDER/rank-0003.slc */
slc_checkpoint_path slc_checkpoint_file(const char *folder, const char *name);
#define SLC_CHECKPOINT_MANIFEST "manifest.json"
#define SLC_CHECKPOINT_EXTRA "extra"

typedef struct {
    uint64_t step;
    uint64_t serial; /* as its manifest says; 0: it does not say */
} slc_saved;

/* Lists the whole checkpoints in `dir` in the order in which they were saved; none if `dir` does not exist. The order
 * is that of their serials and then of their steps: after a rollback a lower step was saved later. A checkpoint whose
 * manifest cannot be read comes next to the one with the highest step below its own. The caller frees the list. */
sluice_status slc_checkpoint_list(const char *dir, slc_saved **list, size_t *count);
/* Finds the folder of the latest checkpoint in `dir`, or `dir` itself if it is one. PATH: there is none. */
sluice_status slc_checkpoint_find(const char *dir, slc_checkpoint_path *folder);

/* Makes `dir` if it does not exist; its name has then reached the disk. */
sluice_status slc_checkpoint_make_dir(const char *dir);
/* Repairs and removes what crashes left in `dir` (a warning if it cannot), and makes the partial folder. */
sluice_status slc_checkpoint_begin(const char *dir, uint64_t step);
/* Makes the partial folder, whose files are synchronized, the checkpoint of its step. After an error it is not; a
 * failure after it has its name is a warning. */
sluice_status slc_checkpoint_publish(const char *dir, uint64_t step);
/* Removes the partial folder; warns if it cannot. */
void slc_checkpoint_abandon(const char *dir, uint64_t step);
/* Removes those checkpoints beyond `keep` (0: none) that were saved first, never that of `step`; warns if it cannot.
 */
void slc_checkpoint_prune(const char *dir, size_t keep, uint64_t step);
