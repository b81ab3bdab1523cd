/* Checkpoints: a folder with one subfolder a checkpoint, `step-000120`, named for the updates applied. Every rank
 * writes what it owns in coordinates of the parameters, so that any world size and any strategy can read it; nothing is
 * gathered, and the memory used is the plan's staging block. The same world size goes on to the bit, under any
 * strategy, schedule and budget. The errors that a compressed optimizer's compression left are each rank's own and are
 * saved too: a run of the same world size goes on to the bit if the same units are onebit; otherwise the errors begin
 * at 0, with a warning. Nothing can be saved while ranks are between two exchanges of their own steps (ORDER;
 * sluice_step_options.exchange). If replicas are apart by roundings (sluice_runtime_replicas_equal), the owner's values
 * are saved, and a run that loads them begins with them on every rank: any two runs that load are equal to the bit, but
 * not to the run that saved, whose replicas stay apart.
 *
 * A crash at any point, of the machine too, leaves the last whole checkpoint: files are written to
 * `step-000120.partial`, synchronized, the manifest last, and then the folder is renamed. The folder must be on a file
 * system that all ranks share. One job at a time writes to it: rank 0 holds a lock in it from its first save until
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

/* Collective, between steps; waits for pending updates. Saves values, optimizer states and the number of updates as
 * checkpoint `step-N` in `dir` (made if it is not there), with `extra` of rank 0 (what the binary needs to go on: data
 * position, settings; may be NULL). One that is there already for this step is replaced. From then on it is the latest,
 * also if the folder holds a higher step, of a run that was taken back (a warning). Then those beyond
 * SLUICE_CHECKPOINT_KEEP of rank 0 (2; 0: none goes) that were saved first, and what crashes left, are removed; what
 * cannot be is a warning on rank 0. Errors: PATH (the folder cannot be made or written to), IO (full disk, another job
 * or runtime holds the folder: what is there stays, nothing half done is left, and training may go on), ARGUMENT (no
 * folder), ORDER (inside a step; ranks hold different weights), FORMAT (names of parameters that could not be read
 * again), NON_FINITE (as sluice_runtime_sync); the same status and line on every rank, whichever rank met it. */
SLUICE_API sluice_status sluice_checkpoint_save(sluice_runtime *rt, const char *dir, const void *extra,
                                                size_t extra_bytes);

/* A save that lies behind the steps that follow it. */
typedef struct {
    size_t struct_size; /* of this struct; SLUICE_INIT sets it */
    uint64_t step;      /* the number of updates that are saved; 0 where no save was under way too */
    double held_s;      /* the program has waited so long on this rank: in begin and end, and for updates that had to
                           wait until what they change was written */
    double whole_s; /* this rank has written so long, with what has reached the disk; rank 0 names and removes too */
    bool under_way; /* it goes on */
} sluice_save_report;

/* begin saves as sluice_checkpoint_save does and returns once the folder is there: values and states are written while
 * the next step runs, each before its update, from where they lie, and what must reach the disk, the checkpoint's name
 * and the removal of old ones lie behind further steps. Nothing of the steps changes. Where memory is a GPU's, or the
 * optimizer a compressed one, begin writes before it returns. The program calls end until nothing is under way, best
 * after each step; a save that is never ended is no checkpoint. `extra` may be freed after begin. Both are collective,
 * between steps. Errors of begin: those of sluice_checkpoint_save that are known then; ORDER too while another save is
 * under way, as of every function that loads or saves.
 *
 * end goes on with the save, and waits for its end if `wait`; `report` may be NULL. Errors: those of
 * sluice_checkpoint_save, after which nothing is under way; nothing is saved then, and the next save may be begun. It
 * may be called after a step has failed alike on every rank (NON_FINITE), so that what was saved before is kept. */
SLUICE_API sluice_status sluice_checkpoint_begin(sluice_runtime *rt, const char *dir, const void *extra,
                                                 size_t extra_bytes);
SLUICE_API sluice_status sluice_checkpoint_end(sluice_runtime *rt, bool wait, sluice_save_report *report);

/* Local, at any time, before commit too; on rank 0, other ranks have nothing to lock. Takes the lock on `dir`, which is
 * there, that the first save would take, and checks the settings that saving reads, so that what stands in its way is
 * known before hours of work. Errors: PATH (no permission), IO (another job or runtime holds the folder), ARGUMENT (no
 * folder; SLUICE_CHECKPOINT_KEEP). */
SLUICE_API sluice_status sluice_checkpoint_lock(sluice_runtime *rt, const char *dir);

/* Collective, after commit, between steps. `dir` is as above (then the one saved last), or the folder of one
 * checkpoint. `extra` and `extra_bytes` may be NULL; else the caller frees `*extra` (never NULL on success). Everything
 * is checked before anything is changed: every rank reads manifest and tables, and each file's data are verified by one
 * rank, with SLUICE_ENGINE_CHECK=on by every rank. Errors: FORMAT (names a missing, additional or misshaped parameter,
 * another optimizer, a file that is truncated or damaged, a newer version), PATH (no checkpoint there, or no
 * permission), IO (one that cannot be read), MISMATCH (ranks see different checkpoints, or one of them cannot read what
 * others can; says which), ARGUMENT (no folder, or a name that is too long): these are the same on every rank and the
 * runtime stays as it was. NON_FINITE as from sluice_runtime_sync. */
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

/* Loads as sluice_checkpoint_load does, but for what `list` says, the same on every rank. Everything else must be as it
 * is there: a parameter of the checkpoint that is neither in the model nor skipped, and one of the model that is
 * neither in the checkpoint nor kept, is an error, and so is a name of the list that nothing has. A parameter's states
 * come with its values; the number of updates is the checkpoint's. Errors besides: UNSUPPORTED (a compressed optimizer,
 * whose phase is of all parameters together), ARGUMENT (no list; a name that nothing has; two parameters that become
 * one). */
SLUICE_API sluice_status sluice_checkpoint_load_list(sluice_runtime *rt, const char *dir,
                                                     const sluice_checkpoint_list *list, void **extra,
                                                     size_t *extra_bytes);

/* Local: tells whether `dir` has a whole checkpoint, and of how many updates the one is that was saved last. A folder
 * that is not there holds none. *step is set only if *found is. Errors: PATH (no permission), IO (unreadable),
 * ARGUMENT (no folder, or no result), MEMORY. */
SLUICE_API sluice_status sluice_checkpoint_latest(const char *dir, bool *found, uint64_t *step);

/* Local: only the extra bytes of the latest (or of `dir`, if it is a checkpoint), checked; the caller frees *extra.
 * Errors: PATH (no checkpoint there, or no permission), IO (unreadable), FORMAT (truncated, damaged or of a newer
 * version), ARGUMENT (no folder, or no result), MEMORY. */
SLUICE_API sluice_status sluice_checkpoint_extra(const char *dir, void **extra, size_t *extra_bytes);

#ifdef __cplusplus
}
#endif
#endif
