/* Saving. Each rank writes the parts that it owns, the same under every strategy: if all ranks have everything they
 * share the work. Ranks meet three times: when the folder exists, when all parts have reached the disk, and when the
 * checkpoint has its name. Between these a save may lie behind the steps that follow it: each rank's file, and then
 * rank 0's manifest, name and removals, are jobs of a thread. tests/checkpoint/checkpoint_test.c covers this file. */
#include "lib/base/clock.h"
#include "lib/base/hash/crc32c.h"
#include "lib/base/log.h"
#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/engine/checkpoint/checkpoint.h"
#include "lib/engine/checkpoint/file.h"
#include "lib/engine/checkpoint/folder.h"
#include "lib/engine/checkpoint/lock.h"
#include "lib/engine/checkpoint/manifest.h"
#include "lib/engine/checkpoint/rank_file.h"
#include "lib/engine/checkpoint/saving.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/settings.h"

#include <sluice/checkpoint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A save from its first call to its end. */
struct slc_saving {
    sluice_runtime *rt;
    char *dir;
    slc_checkpoint_path folder; /* the partial one */
    slc_rank_file file;
    slc_manifest manifest; /* as the step left things */
    slc_manifest_file *files;
    void *extra;
    size_t extra_bytes;
    unsigned keep;
    bool begun;     /* on rank 0: there is a partial folder */
    bool publishes; /* all parts have reached the disk */
    uint64_t held_ns, took_ns;
};

/* ---- The manifest ---- */

/* Names and arrays are borrowed; only `params` is allocated. */
static sluice_status describe_manifest(const sluice_runtime *rt, slc_saving *s)
{
    slc_manifest *out = &s->manifest;
    *out = (slc_manifest){.step = out->step,
                          .serial = out->serial,
                          .optimizer = (char *)rt->optimizer.name,
                          .state_count = rt->optimizer.state_count,
                          .param_count = rt->model.param_count,
                          .files = s->files,
                          .file_count = (uint32_t)rt->size,
                          .extra = {s->extra_bytes, slc_crc32c(0, s->extra, s->extra_bytes)}};
    for (uint32_t i = 0; i < out->state_count; i++) out->states[i] = (char *)rt->optimizer.state_name[i];
    out->own_count = slc_checkpoint_own_names(rt, (const char **)out->own);
    out->params = calloc(rt->model.param_count, sizeof *out->params);
    if (!out->params) return slc_error(SLUICE_ERR_MEMORY, "manifest");
    for (uint32_t p = 0; p < rt->model.param_count; p++)
        out->params[p] = (slc_manifest_param){.name = rt->model.params[p]->name,
                                              .elements = rt->model.params[p]->count,
                                              .trainable = !rt->model.params[p]->frozen,
                                              .missed = rt->model.params[p]->missed};
    slc_checkpoint_progress_save(rt, out);
    return SLUICE_OK;
}

/* Checks that a manifest can be read again before it is written; one with a name of control characters cannot. */
static sluice_status check_readable(const char *text)
{
    slc_manifest again;
    sluice_status status = slc_manifest_from_json(text, strlen(text), &again);
    if (!status) slc_manifest_fini(&again);
    return slc_error_context(status, "this model cannot be saved");
}

static sluice_status write_manifest(const slc_saving *s)
{
    char *text = NULL;
    sluice_status status = slc_manifest_to_json(&s->manifest, &text);
    if (!status) status = check_readable(text);
    slc_checkpoint_path path = slc_checkpoint_file(s->folder.text, SLC_CHECKPOINT_EXTRA);
    if (!status) status = slc_checkpoint_file_put(path.text, s->extra, s->extra_bytes);
    path = slc_checkpoint_file(s->folder.text, SLC_CHECKPOINT_MANIFEST);
    if (!status) status = slc_checkpoint_file_put(path.text, text, strlen(text));
    free(text);
    return status;
}

/* ---- The jobs that may lie behind steps ---- */

static sluice_status write_part(void *context)
{
    slc_saving *s = context;
    if (s->file.file < 0) slc_rank_file_write(&s->file);
    return slc_rank_file_close(&s->file);
}

/* Rank 0's second job, when all parts have reached the disk: makes them the checkpoint of the step. */
static sluice_status publish(void *context)
{
    const slc_saving *s = context;
    sluice_status status = write_manifest(s);
    if (!status) status = slc_checkpoint_publish(s->dir, s->manifest.step);
    if (!status) slc_checkpoint_prune(s->dir, s->keep, s->manifest.step);
    return status;
}

/* ---- The beginning ---- */

/* Gives this save the number after the latest one's in the folder. A lower step than the latest one's is of a run that
 * was taken back to an earlier checkpoint. */
static sluice_status count_save(const sluice_runtime *rt, slc_saving *s)
{
    slc_saved *list;
    size_t count;
    sluice_status status = slc_checkpoint_list(s->dir, &list, &count);
    const slc_saved *latest = count ? &list[count - 1] : NULL;
    s->manifest.serial = latest ? latest->serial + 1 : 1;
    if (latest && latest->step > rt->step)
        slc_log(
            SLC_LOG_WARN,
            "%s: step %llu is saved after step %llu, which is of a run that this one does not go on from: step %llu "
            "is the latest checkpoint now, and step %llu stays until newer ones push it out",
            s->dir, (unsigned long long)rt->step, (unsigned long long)latest->step, (unsigned long long)rt->step,
            (unsigned long long)latest->step);
    free(list);
    return status;
}

static sluice_status begin_folder(const sluice_runtime *rt, slc_saving *s)
{
    sluice_status status = slc_checkpoint_make_dir(s->dir);
    if (!status) status = slc_checkpoint_lock_take(rt, s->dir);
    if (!status) status = slc_checkpoint_begin(s->dir, rt->step);
    s->begun = !status;
    if (!status) status = count_save(rt, s);
    return status;
}

static sluice_status begin_saving(sluice_runtime *rt, slc_saving *s)
{
    s->folder = slc_checkpoint_partial(s->dir, s->manifest.step);
    s->files = calloc((size_t)rt->size, sizeof *s->files);
    if (!s->files) return slc_error(SLUICE_ERR_MEMORY, "checkpoint");
    sluice_status status = slc_setting_count(&slc_engine_settings, "SLUICE_CHECKPOINT_KEEP", &s->keep);
    if (!status && rt->rank == 0) status = begin_folder(rt, s);
    if (!status) status = describe_manifest(rt, s);
    return status ? status : slc_rank_file_list(rt, s->folder.text, &s->file);
}

static void free_saving(slc_saving *s)
{
    if (!s) return;
    slc_rank_file_free(&s->file);
    free(s->manifest.params);
    free(s->files);
    free(s->extra);
    free(s->dir);
    free(s);
}

static sluice_status create_saving(sluice_runtime *rt, const char *dir, const void *extra, size_t extra_bytes,
                                   slc_saving **out)
{
    slc_saving *s = *out = calloc(1, sizeof *s);
    if (!s) return slc_error(SLUICE_ERR_MEMORY, "checkpoint");
    s->rt = rt;
    s->manifest.step = rt->step;
    s->file.file = -1;
    s->dir = strdup(dir);
    s->extra_bytes = extra ? extra_bytes : 0;
    s->extra = malloc(s->extra_bytes + 1);
    if (!s->dir || !s->extra) return slc_error(SLUICE_ERR_MEMORY, "checkpoint");
    if (s->extra_bytes) memcpy(s->extra, extra, s->extra_bytes);
    return SLUICE_OK;
}

/* Forgets a save, and removes what one that fails has made; returns `status`, whose line stays. */
static sluice_status forget(sluice_runtime *rt, slc_saving *s, sluice_status status)
{
    slc_kept_error kept;
    slc_error_keep(&kept);
    if (status && s && s->begun) slc_checkpoint_abandon(s->dir, s->manifest.step);
    free_saving(s);
    rt->saving = NULL;
    return slc_error_restore(&kept, status);
}

/* Gives the writer this rank's part. What cannot be written behind steps is written now. */
static void begin_part(sluice_runtime *rt, slc_saving *s, bool behind)
{
    const bool at_once = !behind || !slc_rank_file_goes_behind(&s->file);
    if (at_once && slc_rank_file_write(&s->file)) behind = false;
    slc_writer_begin(&rt->writer, write_part, s, s->file.last_slots, (uint32_t)s->file.shard.range_count, behind);
}

static sluice_status begin_save(sluice_runtime *rt, const char *dir, const void *extra, size_t extra_bytes, bool behind)
{
    const uint64_t from_ns = slc_clock_ns();
    const char *call = behind ? "checkpoint_begin" : "checkpoint_save";
    sluice_status status = slc_checkpoint_enter(rt, dir, call);
    if (status) return status;
    slc_saving *s = NULL;
    status = slc_phase_require_equal(rt, call);
    if (!status) {
        status = create_saving(rt, dir, extra, extra_bytes, &s);
        status = slc_checkpoint_agree(rt, status ? status : begin_saving(rt, s));
    }
    if (!status) status = slc_checkpoint_progress_join(rt, &s->manifest);
    if (status) {
        status = forget(rt, s, status);
    } else {
        begin_part(rt, s, behind);
        rt->saving = s;
        s->held_ns = slc_clock_ns() - from_ns;
    }
    slc_checkpoint_leave(rt);
    return status;
}

/* ---- The end ---- */

/* Waits for this rank's job, and agrees with the others on how theirs went. */
static sluice_status join_jobs(sluice_runtime *rt, slc_saving *s)
{
    const bool had_job = rt->writer.at_work;
    sluice_status status = slc_writer_end(&rt->writer, rt->comm);
    if (had_job) {
        s->held_ns += rt->writer.held_ns;
        s->took_ns += rt->writer.took_ns;
    }
    return slc_checkpoint_agree(rt, status);
}

static sluice_status begin_publishing(sluice_runtime *rt, slc_saving *s, bool behind)
{
    sluice_status status = sluice_world_all_gather(rt->world, &s->file.wrote, sizeof s->file.wrote, s->files);
    s->publishes = true;
    if (!status && rt->rank == 0) slc_writer_begin(&rt->writer, publish, s, NULL, 0, behind);
    return status;
}

/* Goes one stage on if every rank's job has ended; *over: nothing of the save is left to do. */
static sluice_status go_on(sluice_runtime *rt, slc_saving *s, bool wait, bool *over)
{
    double unfinished = slc_writer_has_ended(&rt->writer) ? 0 : 1;
    sluice_status status = wait ? SLUICE_OK : sluice_world_all_reduce(rt->world, &unfinished, 1);
    if (status || (!wait && unfinished > 0)) return status;
    status = join_jobs(rt, s);
    *over = status || s->publishes;
    return *over ? status : begin_publishing(rt, s, !wait);
}

/* Ends the save if it can, or must. */
static sluice_status end_save(sluice_runtime *rt, bool wait, sluice_save_report *report)
{
    const uint64_t from_ns = slc_clock_ns();
    slc_saving *s = rt->saving;
    bool over = false;
    if (wait) slc_comm_work(rt->comm, "at work");
    sluice_status status = go_on(rt, s, wait, &over);
    while (!status && wait && !over) status = go_on(rt, s, wait, &over);
    if (wait) slc_comm_work(rt->comm, NULL);
    s->held_ns += slc_clock_ns() - from_ns;
    report->under_way = !over;
    report->step = s->manifest.step;
    report->held_s = slc_seconds(s->held_ns);
    report->whole_s = slc_seconds(s->took_ns);
    return over ? forget(rt, s, status) : status;
}

void slc_saving_destroy(sluice_runtime *rt)
{
    slc_saving *s = rt->saving;
    if (!s) return;
    atomic_store(&s->file.gives_up, true); /* but a name is given, or not, as a whole */
    (void)slc_writer_end(&rt->writer, rt->comm);
    free_saving(s);
    rt->saving = NULL;
}

/* ---- The public calls ---- */

sluice_status sluice_checkpoint_lock(sluice_runtime *rt, const char *dir)
{
    unsigned keep;
    if (!rt || !dir || !*dir)
        return slc_error(SLUICE_ERR_ARGUMENT, "checkpoint_lock: a runtime and a folder are needed");
    sluice_status status = slc_runtime_healthy(rt);
    if (!status) status = slc_setting_count(&slc_engine_settings, "SLUICE_CHECKPOINT_KEEP", &keep);
    return status || rt->rank ? status : slc_checkpoint_lock_take(rt, dir);
}

sluice_status sluice_checkpoint_save(sluice_runtime *rt, const char *dir, const void *extra, size_t extra_bytes)
{
    sluice_save_report none;
    sluice_status status = begin_save(rt, dir, extra, extra_bytes, false);
    return status ? status : end_save(rt, true, &none);
}

sluice_status sluice_checkpoint_begin(sluice_runtime *rt, const char *dir, const void *extra, size_t extra_bytes)
{
    return begin_save(rt, dir, extra, extra_bytes, true);
}

/* A save can be ended after a failure that every rank has found in the same call: what it reads is as it was. */
static sluice_status require_end(sluice_runtime *rt)
{
    static const char call[] = "checkpoint_end";
    if (!rt || !rt->saving || !rt->failure.status || !rt->failure.alike || rt->mode != SLC_IDLE)
        return slc_runtime_require_mode(rt, SLC_IDLE, call);
    slc_comm_call(rt->comm, call, NULL);
    return sluice_world_check(rt->world);
}

sluice_status sluice_checkpoint_end(sluice_runtime *rt, bool wait, sluice_save_report *report)
{
    sluice_save_report made = {0};
    sluice_status status = require_end(rt);
    if (!status && report) status = slc_sized_check("sluice_save_report", NULL, report, sizeof made);
    if (!status && rt->saving) status = end_save(rt, wait, &made);
    if (report && rt && (!status || made.step)) slc_sized_write(&made, sizeof made, report);
    return status;
}
