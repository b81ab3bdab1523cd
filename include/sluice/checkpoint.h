/* A checkpoint folder has one subfolder for each checkpoint, `step-000120`, named for the number of updates applied.
 * Every rank writes what it owns, in coordinates of the parameters, so that any world size and any strategy can read
 * it; nothing is gathered, and the memory used is the plan's staging block. A run that loads a checkpoint in the same
 * world size goes on with the same bits, under any strategy, schedule and budget. The errors that a compressed
 * optimizer's compression left are each rank's own and are saved too: a run of the same world size goes on with the
 * same bits if the same units are onebit; otherwise the errors begin at 0, with a warning. Nothing can be saved while
 * ranks are between two exchanges of their own steps (ORDER; sluice_step_options.exchange). If replicas are apart by
 * roundings (sluice_runtime_replicas_equal), the owner's values are saved, and a run that loads them begins with them
 * on every rank: any two runs that load are equal to the bit, but not to the run that saved, whose replicas stay apart.
 *
 * A crash of the program or of the machine, at any point, leaves the last whole checkpoint intact: files are written to
 * `step-000120.partial` and synchronized, the manifest last, and then the folder is renamed. The folder must be on a
 * file system that all ranks share. One job at a time writes to it: rank 0 holds a lock in it from its first save until
 * sluice_runtime_destroy or the end of the process. The format is in docs/formats.md.
 *
 * Threads and the errors that every function may return are those of sluice/runtime.h; the functions marked local take
 * no runtime and may be called from any thread. Sizes are in bytes. */
#ifndef SLUICE_CHECKPOINT_H
#define SLUICE_CHECKPOINT_H

#include <sluice/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Saves values, optimizer states and the number of updates as checkpoint `step-N` in `dir`, which is made if it is not
 * there, with `extra` of rank 0 (what the binary needs to go on: data position, settings; may be NULL). Collective,
 * between steps; waits for pending updates. A checkpoint of the same step that is already there is replaced. The new
 * checkpoint counts as the latest, even if the folder holds one of a higher step, from a run that was taken back (a
 * warning). Then the checkpoints that were saved first are removed, until SLUICE_CHECKPOINT_KEEP of rank 0 are left
 * (default 2; 0 removes none), and so is what crashes left; what cannot be removed is a warning on rank 0. Errors: PATH
 * (the folder cannot be made or written to), IO (full disk, another job or runtime holds the folder: what is there
 * stays, nothing half done is left, and training may go on), ARGUMENT (no folder), ORDER (inside a step; ranks hold
 * different weights), FORMAT (names of parameters that could not be read again), NON_FINITE (as sluice_runtime_sync);
 * the same status and line on every rank, whichever rank met it. */
SLUICE_API sluice_status sluice_checkpoint_save(sluice_runtime *rt, const char *dir, const void *extra,
                                                size_t extra_bytes);

/* The report on a save that sluice_checkpoint_begin has begun and that goes on during the steps that follow. */
typedef struct {
    size_t struct_size; /* of this struct; SLUICE_INIT sets it */
    uint64_t step;      /* the number of updates that are saved; 0 where no save was under way too */
    double held_s;      /* the program has waited so long on this rank: in begin and end, and for updates that had to
                           wait until what they change was written */
    double whole_s; /* this rank has written so long, with what has reached the disk; rank 0 names and removes too */
    bool under_way; /* it goes on */
} sluice_save_report;

/* sluice_checkpoint_begin saves as sluice_checkpoint_save does, but returns once the folder is there. Values and states
 * are written from where they lie while the next step runs, each before its update. During further steps the data
 * reaches the disk, the checkpoint gets its name, and old checkpoints are removed. The steps themselves do not change.
 * If memory is a GPU's, or the optimizer is a compressed one, begin writes before it returns. The program calls
 * sluice_checkpoint_end until nothing is under way, best after each step; a save that is never ended is no checkpoint.
 * `extra` may be freed after begin. Both functions are collective, between steps. Errors of begin: those of
 * sluice_checkpoint_save that are known by then; ORDER also while another save is under way, as from every function
 * that loads or saves.
 *
 * sluice_checkpoint_end goes on with the save, and waits for its end if `wait` is set; `report` may be NULL. Errors:
 * those of sluice_checkpoint_save. After an error nothing has been saved, no save is under way, and the next one may be
 * begun. end may be called after a step has failed alike on every rank (NON_FINITE), so that what was saved before is
 * kept. */
SLUICE_API sluice_status sluice_checkpoint_begin(sluice_runtime *rt, const char *dir, const void *extra,
                                                 size_t extra_bytes);
SLUICE_API sluice_status sluice_checkpoint_end(sluice_runtime *rt, bool wait, sluice_save_report *report);

/* Takes the lock on `dir` that the first save would take, and checks the settings that saving reads, so that a program
 * learns before hours of work what would stop a save. `dir` must be there. Local, at any time, before commit too; only
 * rank 0 has something to lock. Errors: PATH (no permission), IO (another job or runtime holds the folder), ARGUMENT
 * (no folder; SLUICE_CHECKPOINT_KEEP). */
SLUICE_API sluice_status sluice_checkpoint_lock(sluice_runtime *rt, const char *dir);

/* Loads the checkpoint that was saved last in the folder `dir`, or `dir` itself if it is the folder of one checkpoint.
 * Collective, after commit, between steps. `extra` and `extra_bytes` may be NULL; else the caller frees `*extra` (never
 * NULL on success). Everything is checked before anything is changed: every rank reads manifest and tables, and each
 * file's data are verified by one rank, with SLUICE_ENGINE_CHECK=on by every rank. Errors: FORMAT (names a missing,
 * additional or misshaped parameter, another optimizer, a file that is truncated or damaged, a newer version), PATH (no
 * checkpoint there, or no permission), IO (it cannot be read), MISMATCH (ranks see different checkpoints, or one of
 * them cannot read what others can; says which), ARGUMENT (no folder, or a name that is too long): these are the same
 * on every rank and the runtime stays as it was. NON_FINITE as from sluice_runtime_sync. */
SLUICE_API sluice_status sluice_checkpoint_load(sluice_runtime *rt, const char *dir, void **extra, size_t *extra_bytes);

/* The list tells sluice_checkpoint_load_list what to take of a checkpoint whose parameters are not those of the model:
 * a body under another head, layers under other names, parameters that are new. Names are those of sluice_param_name;
 * one that ends with "*" stands for all that begin so. */
typedef struct {
    size_t struct_size;      /* of this struct; SLUICE_INIT sets it */
    const char *const *skip; /* of the checkpoint, that are left out */
    size_t skip_count;
    const char *const *rename; /* of the checkpoint and of the model, in turn: 2 x rename_count; "a.*" becomes "b.*" */
    size_t rename_count;
    const char *const *keep; /* of the model, which the checkpoint lacks: they keep the values and states they have */
    size_t keep_count;
    /* Called on rank 0 for each parameter that is not loaded under its own name, with a line that says what becomes of
     * it. NULL: nobody is told. */
    void (*told)(const char *line, void *context);
    void *context;
} sluice_checkpoint_list;

/* Loads as sluice_checkpoint_load does, except for what `list` says; every rank gives the same list. Everything else
 * must match: a parameter of the checkpoint must be in the model or be skipped, a parameter of the model must be in the
 * checkpoint or be kept, and a name in the list must be that of some parameter. A parameter's states come with its
 * values; the number of updates is the checkpoint's. Errors besides: UNSUPPORTED (a compressed optimizer, whose phase
 * is of all parameters together), ARGUMENT (no list; a name that nothing has; two parameters that become one). */
SLUICE_API sluice_status sluice_checkpoint_load_list(sluice_runtime *rt, const char *dir,
                                                     const sluice_checkpoint_list *list, void **extra,
                                                     size_t *extra_bytes);

/* Says in *found whether `dir` has a whole checkpoint, and in *step how many updates the checkpoint has that was saved
 * last. A folder that is not there holds none. *step is set only if *found is. Local. Errors: PATH (no permission), IO
 * (unreadable), ARGUMENT (no folder, or no result), MEMORY. */
SLUICE_API sluice_status sluice_checkpoint_latest(const char *dir, bool *found, uint64_t *step);

/* Local: only the extra bytes of the latest (or of `dir`, if it is a checkpoint), checked; the caller frees *extra.
 * Errors: PATH (no checkpoint there, or no permission), IO (unreadable), FORMAT (truncated, damaged or of a newer
 * version), ARGUMENT (no folder, or no result), MEMORY. */
SLUICE_API sluice_status sluice_checkpoint_extra(const char *dir, void **extra, size_t *extra_bytes);

#ifdef __cplusplus
}
#endif
#endif
