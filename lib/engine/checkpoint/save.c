/* Saving. Each rank writes the parts that it owns, the same under every strategy: if all ranks have everything they
 * share the work. Ranks meet three times: when the folder exists, when all parts have reached the disk, and when the
 * checkpoint has its name. tests/checkpoint/checkpoint_test.c covers this file. */
#include "lib/base/hash/crc32c.h"
#include "lib/base/integer.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/checkpoint/checkpoint.h"
#include "lib/engine/checkpoint/file.h"
#include "lib/engine/checkpoint/folder.h"
#include "lib/engine/checkpoint/lock.h"
#include "lib/engine/checkpoint/manifest.h"
#include "lib/engine/checkpoint/shard.h"
#include "lib/engine/model/buffers.h"
#include "lib/engine/model/param_arrays.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/settings.h"

#include <sluice/checkpoint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A rank's file ---- */

/* Lists the arrays that this rank has for itself. */
static uint64_t list_own(const sluice_runtime *rt, slc_shard_range *out)
{
    const char *names[SLC_MANIFEST_OWN_MAX];
    uint32_t count = slc_checkpoint_own_names(rt, names);
    uint64_t used = 0;
    for (uint32_t p = 0; p < rt->model.param_count; p++)
        for (uint32_t i = 0; i < count; i++) {
            uint64_t elements = slc_checkpoint_own(rt->model.params[p], names[i], NULL);
            if (!elements) continue;
            if (out) out[used] = (slc_shard_range){p, 1 + rt->optimizer.state_count + i, 0, elements, 0};
            used++;
        }
    return used;
}

/* Lists everything that this rank owns, in the order of the file. */
static uint64_t list_ranges(const sluice_runtime *rt, slc_shard_range *out)
{
    uint64_t used = 0;
    for (uint32_t p = 0; p < rt->model.param_count; p++)
        for (uint32_t a = 0; a < slc_checkpoint_arrays(rt, rt->model.params[p]); a++) {
            uint64_t first = 0, count = rt->model.params[p]->count;
            while (slc_param_owned(rt->model.params[p], &first, &count)) {
                if (out) out[used] = (slc_shard_range){p, a, first, count, 0};
                used++;
                first += count;
                count = rt->model.params[p]->count - first;
            }
        }
    return used + list_own(rt, out ? out + used : NULL);
}

/* Writes a range of a shard. Elements go through a piece of host memory, because a file system does not see a device's
 * memory and values may have to be widened. */
static sluice_status write_range(sluice_runtime *rt, int file, const char *path, slc_shard_range *range,
                                 uint64_t offset)
{
    const char *names[SLC_MANIFEST_OWN_MAX];
    uint32_t states = rt->optimizer.state_count;
    sluice_param *param = rt->model.params[range->param];
    const slc_file_room room = slc_engine_file_room(rt);
    float *own = NULL;
    slc_checkpoint_own_names(rt, names);
    if (range->array > states) slc_checkpoint_own(param, names[range->array - states - 1], &own);
    range->crc32c = 0;
    for (uint64_t done = 0; done < range->count;) {
        const uint64_t count = slc_least(range->count - done, room.bytes / 4);
        slc_comm_work(rt->comm, "writing");
        sluice_status status = own ? slc_bounce_read(&rt->memory.bounce, SLUICE_FP32, own + done, room.memory, count)
                                   : slc_param_get_owned(param, range->array, range->first + done, count, room.memory);
        if (!status) status = slc_checkpoint_file_write(file, path, room.memory, 4 * count, offset + 4 * done);
        if (status) return status;
        range->crc32c = slc_crc32c(range->crc32c, room.memory, 4 * count);
        done += count;
    }
    return SLUICE_OK;
}

static sluice_status write_shard(sluice_runtime *rt, int file, const char *path, slc_shard *shard,
                                 slc_manifest_file *wrote)
{
    uint64_t head_bytes = slc_shard_head_bytes(shard->range_count), offset = head_bytes;
    unsigned char *head = malloc(head_bytes);
    sluice_status status = head ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "table of a checkpoint");
    for (uint64_t i = 0; !status && i < shard->range_count; i++) {
        status = write_range(rt, file, path, &shard->ranges[i], offset);
        offset += 4 * shard->ranges[i].count;
    }
    if (!status) {
        slc_shard_encode(shard, head); /* comes last, when the checksums are known */
        status = slc_checkpoint_file_write(file, path, head, head_bytes, 0);
    }
    *wrote = (slc_manifest_file){offset, shard->crc32c};
    free(head);
    return status;
}

static sluice_status write_rank_file(sluice_runtime *rt, const char *folder, slc_manifest_file *wrote)
{
    slc_shard shard = {.rank = (uint32_t)rt->rank, .world = (uint32_t)rt->size, .step = rt->step};
    slc_checkpoint_path path = slc_checkpoint_rank_file(folder, shard.rank);
    shard.range_count = list_ranges(rt, NULL);
    shard.ranges = calloc(shard.range_count + 1, sizeof *shard.ranges);
    if (!shard.ranges)
        return slc_error(SLUICE_ERR_MEMORY, "%llu ranges of a checkpoint", (unsigned long long)shard.range_count);
    list_ranges(rt, shard.ranges);
    int file;
    sluice_status status = slc_checkpoint_file_create(path.text, &file);
    if (!status) status = write_shard(rt, file, path.text, &shard, wrote);
    status = slc_checkpoint_file_close(file, path.text, status);
    free(shard.ranges);
    return status;
}

/* ---- The manifest ---- */

/* Names and arrays are borrowed; only `params` is allocated. */
static sluice_status describe_manifest(const sluice_runtime *rt, slc_manifest_file *files, slc_manifest *out)
{
    *out = (slc_manifest){.step = rt->step,
                          .optimizer = (char *)rt->optimizer.name,
                          .state_count = rt->optimizer.state_count,
                          .param_count = rt->model.param_count,
                          .files = files,
                          .file_count = (uint32_t)rt->size};
    for (uint32_t s = 0; s < out->state_count; s++) out->states[s] = (char *)rt->optimizer.state_name[s];
    out->own_count = slc_checkpoint_own_names(rt, (const char **)out->own);
    out->params = calloc(rt->model.param_count, sizeof *out->params);
    if (!out->params) return slc_error(SLUICE_ERR_MEMORY, "manifest");
    for (uint32_t p = 0; p < rt->model.param_count; p++)
        out->params[p] = (slc_manifest_param){.name = rt->model.params[p]->name,
                                              .elements = rt->model.params[p]->count,
                                              .trainable = !rt->model.params[p]->frozen};
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

typedef struct {
    const char *dir;
    slc_checkpoint_path folder; /* the partial one */
    slc_manifest_file *files;
    const void *extra;
    size_t extra_bytes;
    unsigned keep;
    uint64_t serial; /* on rank 0 */
    bool begun;      /* on rank 0: there is a partial folder */
} saving;

static sluice_status write_manifest(const sluice_runtime *rt, const saving *s)
{
    slc_manifest manifest;
    char *text = NULL;
    sluice_status status = describe_manifest(rt, s->files, &manifest);
    manifest.serial = s->serial;
    manifest.extra = (slc_manifest_file){s->extra_bytes, slc_crc32c(0, s->extra, s->extra_bytes)};
    if (!status) status = slc_manifest_to_json(&manifest, &text);
    if (!status) status = check_readable(text);
    slc_checkpoint_path path = slc_checkpoint_file(s->folder.text, SLC_CHECKPOINT_EXTRA);
    if (!status) status = slc_checkpoint_file_put(path.text, s->extra, s->extra_bytes);
    path = slc_checkpoint_file(s->folder.text, SLC_CHECKPOINT_MANIFEST);
    if (!status) status = slc_checkpoint_file_put(path.text, text, strlen(text));
    free(manifest.params);
    free(text);
    return status;
}

/* ---- All together ---- */

/* Gives this save the number after the latest one's in the folder. A lower step than the latest one's is of a run that
 * was taken back to an earlier checkpoint. */
static sluice_status count_save(const sluice_runtime *rt, saving *s)
{
    slc_saved *list;
    size_t count;
    sluice_status status = slc_checkpoint_list(s->dir, &list, &count);
    const slc_saved *latest = count ? &list[count - 1] : NULL;
    s->serial = latest ? latest->serial + 1 : 1;
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

static sluice_status begin_folder(const sluice_runtime *rt, saving *s)
{
    sluice_status status = slc_checkpoint_make_dir(s->dir);
    if (!status) status = slc_checkpoint_lock_take(rt, s->dir);
    if (!status) status = slc_checkpoint_begin(s->dir, rt->step);
    s->begun = !status;
    if (!status) status = count_save(rt, s);
    return status;
}

static sluice_status begin_saving(const sluice_runtime *rt, saving *s)
{
    s->folder = slc_checkpoint_partial(s->dir, rt->step);
    s->files = calloc((size_t)rt->size, sizeof *s->files);
    if (!s->files) return slc_error(SLUICE_ERR_MEMORY, "checkpoint");
    sluice_status status = slc_setting_count(&slc_engine_settings, "SLUICE_CHECKPOINT_KEEP", &s->keep);
    return status || rt->rank ? status : begin_folder(rt, s);
}

static sluice_status finish_saving(const sluice_runtime *rt, const saving *s)
{
    if (rt->rank != 0) return SLUICE_OK;
    sluice_status status = write_manifest(rt, s);
    return status ? status : slc_checkpoint_publish(s->dir, rt->step);
}

static sluice_status save_together(sluice_runtime *rt, saving *s)
{
    slc_manifest_file own = {0};
    sluice_status status = slc_phase_require_equal(rt, "checkpoint_save");
    if (!status) status = slc_checkpoint_agree(rt, begin_saving(rt, s));
    if (!status) status = slc_checkpoint_agree(rt, write_rank_file(rt, s->folder.text, &own));
    if (!status) status = sluice_world_all_gather(rt->world, &own, sizeof own, s->files);
    if (!status) status = slc_checkpoint_agree(rt, finish_saving(rt, s));
    if (!status && rt->rank == 0) slc_checkpoint_prune(s->dir, s->keep, rt->step);
    return status;
}

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
    sluice_status status = slc_checkpoint_enter(rt, dir, "checkpoint_save");
    if (status) return status;
    saving s = {.dir = dir, .extra = extra ? extra : "", .extra_bytes = extra ? extra_bytes : 0};
    status = save_together(rt, &s);
    char why[2048];
    snprintf(why, sizeof why, "%s", sluice_last_error());
    if (status && s.begun) slc_checkpoint_abandon(dir, rt->step);
    sluice_status left = slc_checkpoint_leave(rt);
    free(s.files);
    return status ? slc_error(status, "%s", why) : left;
}
