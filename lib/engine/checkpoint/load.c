/* Loading. Every rank reads all tables, and together they read all bytes. Only when everything is as it must be does
 * each rank read the parts that its strategies keep, from whichever files hold them.
 * tests/checkpoint/checkpoint_test.c covers this file. */
#include "lib/base/hash/crc32c.h"
#include "lib/base/file/file.h"
#include "lib/base/integer.h"
#include "lib/base/log.h"
#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/engine/check/check.h"
#include "lib/engine/checkpoint/checkpoint.h"
#include "lib/engine/checkpoint/folder.h"
#include "lib/engine/checkpoint/load_list.h"
#include "lib/engine/checkpoint/manifest.h"
#include "lib/engine/checkpoint/shard.h"
#include "lib/engine/model/buffers.h"
#include "lib/engine/model/param_arrays.h"

#include <sluice/checkpoint.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    sluice_runtime *rt;
    slc_checkpoint_path found;
    const char *folder; /* what is found */
    slc_manifest manifest;
    uint32_t checksum;                            /* of the manifest */
    const sluice_checkpoint_list *list;           /* NULL: all of it, and nothing else */
    sluice_param **params;                        /* this runtime's, in the manifest's order; NULL: it is skipped */
    uint32_t states[SLUICE_OPTIMIZER_STATES_MAX]; /* this optimizer's numbers, in the manifest's order */
    slc_shard *shards;                            /* of each file */
    uint32_t *own_ranks;  /* [params of the manifest] files in which ranks' own arrays of it are, all of them, */
    uint32_t *own_before; /* and of those the files before the one that is read */
    uint64_t dropped;     /* ranges of this rank's own arrays that this run does not have */
    void *extra;
} loading;

/* ---- Files ---- */

/* Refuses a pipe or a device in a file's place, which might block or never end. */
static sluice_status open_regular(const char *path, slc_file *file)
{
    sluice_status status = slc_file_open(path, file);
    return status == SLUICE_ERR_ARGUMENT ? slc_error(SLUICE_ERR_FORMAT, "%s", sluice_last_error()) : status;
}

static sluice_status open_file(const char *path, uint64_t wanted_bytes, slc_file *file)
{
    sluice_status status = open_regular(path, file);
    if (status || file->bytes == wanted_bytes) return status;
    return slc_error(SLUICE_ERR_FORMAT, "%s: %s: it has %llu bytes, the manifest says %llu", path,
                     file->bytes < wanted_bytes ? "truncated" : "too long", (unsigned long long)file->bytes,
                     (unsigned long long)wanted_bytes);
}

/* *checksum becomes that of the manifest, which holds the checksums of all other files. */
static sluice_status read_manifest(const char *folder, slc_manifest *out, uint32_t *checksum)
{
    return slc_manifest_read(slc_checkpoint_file(folder, SLC_CHECKPOINT_MANIFEST).text, out, checksum);
}

/* The result is one byte longer than the file, so that there is always something to free. */
static sluice_status read_extra(const char *folder, const slc_manifest_file *what, void **out)
{
    slc_checkpoint_path path = slc_checkpoint_file(folder, SLC_CHECKPOINT_EXTRA);
    slc_file file = SLC_FILE_NONE;
    *out = NULL;
    sluice_status status = open_file(path.text, what->bytes, &file);
    if (!status && !(*out = malloc(what->bytes + 1))) status = slc_error(SLUICE_ERR_MEMORY, "%s", path.text);
    if (!status) status = slc_file_read(&file, 0, what->bytes, *out);
    if (!status && slc_crc32c(0, *out, what->bytes) != what->crc32c)
        status = slc_error(SLUICE_ERR_FORMAT, "%s: damaged: its checksum is another", path.text);
    slc_file_close(&file);
    if (status) {
        free(*out);
        *out = NULL;
    }
    return status;
}

/* ---- Checks that it fits this model and optimizer ---- */

static sluice_status match_states(loading *l)
{
    const slc_manifest *m = &l->manifest;
    const sluice_optimizer *o = &l->rt->optimizer;
    if (strcmp(m->optimizer, o->name) || m->state_count != o->state_count)
        return slc_error(SLUICE_ERR_FORMAT, "%s was saved by optimizer %s with %u states, this run has %s with %u",
                         l->folder, m->optimizer, m->state_count, o->name, o->state_count);
    for (uint32_t s = 0; s < m->state_count; s++) {
        l->states[s] = UINT32_MAX;
        for (uint32_t k = 0; k < o->state_count; k++)
            if (!strcmp(m->states[s], o->state_name[k])) l->states[s] = k;
        if (l->states[s] == UINT32_MAX)
            return slc_error(SLUICE_ERR_FORMAT, "%s holds an optimizer state \"%s\" that %s does not have", l->folder,
                             m->states[s], o->name);
    }
    return SLUICE_OK;
}

static const sluice_param *find_param(const sluice_runtime *rt, const char *name, uint32_t hint)
{
    if (hint < rt->model.param_count && !strcmp(rt->model.params[hint]->name, name)) return rt->model.params[hint];
    for (uint32_t p = 0; p < rt->model.param_count; p++)
        if (!strcmp(rt->model.params[p]->name, name)) return rt->model.params[p];
    return NULL;
}

static sluice_status match_param(const loading *l, const slc_manifest_param *saved, const sluice_param *param)
{
    if (!param)
        return slc_error(SLUICE_ERR_FORMAT, "%s holds a parameter \"%s\" that this model does not have", l->folder,
                         saved->name);
    if (saved->elements != param->count)
        return slc_error(SLUICE_ERR_FORMAT, "%s: parameter \"%s\" has %llu elements, in this model %llu", l->folder,
                         saved->name, (unsigned long long)saved->elements, (unsigned long long)param->count);
    if (saved->trainable == param->frozen)
        return slc_error(SLUICE_ERR_FORMAT, "%s: parameter \"%s\" was %s, in this model it is %s", l->folder,
                         saved->name, saved->trainable ? "trained" : "frozen", param->frozen ? "frozen" : "trained");
    return SLUICE_OK;
}

static sluice_status match_params(loading *l)
{
    const slc_manifest *m = &l->manifest;
    l->params = calloc((size_t)m->param_count + 1, sizeof(sluice_param *));
    if (!l->params) return slc_error(SLUICE_ERR_MEMORY, "%u parameters", m->param_count);
    for (uint32_t p = 0; p < m->param_count; p++) {
        char name[SLC_LOAD_NAME_ROOM];
        if (!slc_load_list_name(l->list, m->params[p].name, name)) continue;
        const sluice_param *param = find_param(l->rt, name, p);
        const bool renamed = strcmp(name, m->params[p].name) != 0;
        sluice_status status = SLUICE_OK;
        if (!param && renamed)
            status = slc_error(SLUICE_ERR_FORMAT, "%s: \"%s\" would become \"%s\", which this model does not have",
                               l->folder, m->params[p].name, name);
        if (!status) status = match_param(l, &m->params[p], param);
        for (uint32_t k = 0; !status && l->list && k < p; k++)
            if (l->params[k] == param)
                status = slc_error(SLUICE_ERR_ARGUMENT, "%s: \"%s\" and \"%s\" would both become \"%s\"", l->folder,
                                   m->params[k].name, m->params[p].name, name);
        if (status) return status;
        l->params[p] = (sluice_param *)param;
    }
    if (!l->list && m->param_count == l->rt->model.param_count) return SLUICE_OK; /* names are unique on both sides */
    for (uint32_t p = 0; p < l->rt->model.param_count; p++) {
        bool there = false;
        for (uint32_t k = 0; !there && k < m->param_count; k++) there = l->params[k] == l->rt->model.params[p];
        if (!there && !slc_load_list_keeps(l->list, l->rt->model.params[p]->name))
            return slc_error(SLUICE_ERR_FORMAT, "%s lacks the parameter \"%s\"", l->folder,
                             l->rt->model.params[p]->name);
    }
    return SLUICE_OK;
}

/* ---- Checks that all files are there and cover every array once ---- */

/* Returns true if the range begins an array that each rank has for itself. */
static bool is_own(const loading *l, const slc_shard_range *range)
{
    uint32_t states = l->manifest.state_count;
    return l->manifest.params[range->param].trainable && range->array > states &&
           range->array - states <= l->manifest.own_count && !range->first;
}

static sluice_status check_ranges(const loading *l, const slc_shard *shard)
{
    for (uint64_t i = 0; i < shard->range_count; i++) {
        const slc_shard_range *r = &shard->ranges[i];
        bool known = r->param < l->manifest.param_count;
        const slc_manifest_param *param = known ? &l->manifest.params[r->param] : NULL;
        if (known && is_own(l, r)) continue;
        if (!known || r->array > (param->trainable ? l->manifest.state_count : 0) || r->first > param->elements ||
            r->count > param->elements - r->first)
            return slc_error(SLUICE_ERR_FORMAT, "its range %llu is of no parameter in the manifest",
                             (unsigned long long)i);
    }
    return SLUICE_OK;
}

static sluice_status read_table(const loading *l, const slc_file *file, uint32_t rank, slc_shard *out)
{
    const slc_manifest_file *wanted = &l->manifest.files[rank];
    unsigned char header[SLC_SHARD_HEADER_BYTES], *head = NULL;
    sluice_status status = SLUICE_OK;
    if (wanted->bytes >= sizeof header) status = slc_file_read(file, 0, sizeof header, header);
    if (!status) status = slc_shard_decode_header(header, wanted->bytes, out);
    if (!status && (out->rank != rank || out->world != l->manifest.file_count || out->step != l->manifest.step ||
                    out->crc32c != wanted->crc32c))
        status = slc_error(SLUICE_ERR_FORMAT, "of another checkpoint: the manifest says otherwise");
    if (status) return status;
    uint64_t bytes = slc_shard_head_bytes(out->range_count);
    head = malloc(bytes);
    status = head ? slc_file_read(file, 0, bytes, head) : slc_error(SLUICE_ERR_MEMORY, "table of a checkpoint");
    if (!status) status = slc_shard_decode_ranges(head, wanted->bytes, out);
    free(head);
    return status ? status : check_ranges(l, out);
}

static sluice_status read_tables(loading *l)
{
    l->shards = calloc(l->manifest.file_count, sizeof *l->shards);
    if (!l->shards) return slc_error(SLUICE_ERR_MEMORY, "checkpoint");
    sluice_status status = SLUICE_OK;
    for (uint32_t f = 0; !status && f < l->manifest.file_count; f++) {
        slc_file file = SLC_FILE_NONE;
        slc_checkpoint_path path = slc_checkpoint_rank_file(l->folder, f);
        status = open_file(path.text, l->manifest.files[f].bytes, &file);
        if (!status) status = slc_error_context(read_table(l, &file, f, &l->shards[f]), "%s", path.text);
        slc_file_close(&file);
    }
    return status;
}

static int by_place(const void *a, const void *b)
{
    const slc_shard_range *x = a, *y = b;
    if (x->param != y->param) return x->param < y->param ? -1 : 1;
    if (x->array != y->array) return x->array < y->array ? -1 : 1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return (x->count > y->count) - (x->count < y->count);
}

/* `all` is sorted. Each array must be covered from its first element to its last, each element once. */
static sluice_status check_cover(const loading *l, const slc_shard_range *all, uint64_t count)
{
    uint64_t i = 0;
    for (uint32_t p = 0; p < l->manifest.param_count; p++) {
        const slc_manifest_param *param = &l->manifest.params[p];
        for (uint32_t a = 0; a <= (param->trainable ? l->manifest.state_count : 0); a++) {
            uint64_t at = 0;
            for (; i < count && all[i].param == p && all[i].array == a && all[i].first == at; i++) at += all[i].count;
            if (at != param->elements)
                return slc_error(
                    SLUICE_ERR_FORMAT, "%s: elements of parameter \"%s\"%s%s from %llu on are %s", l->folder,
                    param->name, a ? ", state " : "", a ? l->manifest.states[a - 1] : "", (unsigned long long)at,
                    i < count && all[i].param == p && all[i].array == a && all[i].first < at ? "in two files"
                                                                                             : "in no file");
        }
    }
    return i == count ? SLUICE_OK : slc_error(SLUICE_ERR_FORMAT, "%s: some elements are in two files", l->folder);
}

static sluice_status check_coverage(const loading *l)
{
    uint64_t count = 0, used = 0;
    for (uint32_t f = 0; f < l->manifest.file_count; f++) count += l->shards[f].range_count;
    slc_shard_range *all = malloc((count + 1) * sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "%llu ranges of a checkpoint", (unsigned long long)count);
    for (uint32_t f = 0; f < l->manifest.file_count; f++) {
        const slc_shard *shard = &l->shards[f];
        for (uint64_t i = 0; i < shard->range_count; i++)
            if (!is_own(l, &shard->ranges[i])) all[used++] = shard->ranges[i];
    }
    count = used;
    qsort(all, count, sizeof *all, by_place);
    sluice_status status = check_cover(l, all, count);
    free(all);
    return status;
}

/* ---- All bytes of a file ---- */

typedef sluice_status range_function(loading *l, const slc_file *file, const slc_shard_range *range, uint64_t offset);

static sluice_status for_ranges(loading *l, uint32_t f, range_function *visit)
{
    const slc_shard *shard = &l->shards[f];
    uint64_t offset = slc_shard_head_bytes(shard->range_count);
    slc_file file = SLC_FILE_NONE;
    slc_checkpoint_path path = slc_checkpoint_rank_file(l->folder, f);
    sluice_status status = open_file(path.text, l->manifest.files[f].bytes, &file);
    for (uint64_t i = 0; !status && i < shard->range_count; i++) {
        status = visit(l, &file, &shard->ranges[i], offset);
        offset += 4 * shard->ranges[i].count;
    }
    slc_file_close(&file);
    return status;
}

static sluice_status verify_range(loading *l, const slc_file *file, const slc_shard_range *range, uint64_t offset)
{
    const slc_file_room room = slc_engine_file_room(l->rt);
    uint64_t left = 4 * range->count;
    uint32_t crc = 0;
    while (left) {
        const uint64_t bytes = slc_least(left, room.bytes);
        slc_comm_work(l->rt->comm, "reading");
        sluice_status status = slc_file_read(file, offset, bytes, room.memory);
        if (status) return status;
        crc = slc_crc32c(crc, room.memory, bytes);
        left -= bytes;
        offset += bytes;
    }
    if (crc == range->crc32c) return SLUICE_OK;
    const slc_manifest *m = &l->manifest;
    return slc_error(
        SLUICE_ERR_FORMAT,
        "%s: damaged: elements %llu to %llu of \"%s\"%s%s do not have their checksum, as rank %d reads them",
        file->path, (unsigned long long)range->first, (unsigned long long)(range->first + range->count),
        m->params[range->param].name, range->array ? ", state " : "",
        !range->array                    ? ""
        : range->array <= m->state_count ? m->states[range->array - 1]
                                         : m->own[range->array - 1 - m->state_count],
        l->rt->rank);
}

/* Verifies the checksums of the files. All ranks read the same files, so each file is verified by one rank; under
 * SLUICE_ENGINE_CHECK, which takes nothing for granted, by every rank. */
static sluice_status verify(loading *l)
{
    const bool all = l->rt->check != NULL;
    const uint32_t every = all ? 1 : (uint32_t)l->rt->size;
    sluice_status status = SLUICE_OK;
    for (uint32_t f = all ? 0 : (uint32_t)l->rt->rank; !status && f < l->manifest.file_count; f += every)
        status = for_ranges(l, f, verify_range);
    return status;
}

/* Counts the ranks that have saved arrays of their own of each parameter: those that held it. */
static void count_own(const loading *l, uint32_t file, uint32_t *counts)
{
    const slc_shard *shard = &l->shards[file];
    for (uint64_t i = 0; i < shard->range_count; i++)
        counts[shard->ranges[i].param] +=
            is_own(l, &shard->ranges[i]) && shard->ranges[i].array == l->manifest.state_count + 1;
}

static sluice_status count_owners(loading *l)
{
    const size_t params = (size_t)l->manifest.param_count + 1;
    l->own_ranks = calloc(params, sizeof *l->own_ranks);
    l->own_before = calloc(params, sizeof *l->own_before);
    if (!l->own_ranks || !l->own_before) return slc_error(SLUICE_ERR_MEMORY, "arrays of ranks");
    for (uint32_t f = 0; f < l->manifest.file_count; f++) count_own(l, f, l->own_ranks);
    return SLUICE_OK;
}

/* Returns true if the array in the file that is read is this rank's. As many ranks must share the parameter as have
 * saved it; they are in order, in whatever stages of a pipeline it lay and lies. */
static bool is_mine(const loading *l, const slc_shard_range *range)
{
    const sluice_param *param = l->params[range->param];
    return param && param->unit != SLC_NONE && l->own_ranks[range->param] == (uint32_t)l->rt->replicas &&
           l->own_before[range->param] == (uint32_t)l->rt->replica;
}

/* Restores an array that this rank saved for itself, if the unit is onebit again. */
static sluice_status apply_own(loading *l, const slc_file *file, const slc_shard_range *range, uint64_t offset)
{
    sluice_runtime *rt = l->rt;
    float *data = NULL;
    const char *name = l->manifest.own[range->array - 1 - l->manifest.state_count];
    if (slc_checkpoint_own(l->params[range->param], name, NULL) != range->count) {
        l->dropped++;
        return SLUICE_OK;
    }
    slc_checkpoint_own(l->params[range->param], name, &data);
    const slc_file_room room = slc_engine_file_room(rt);
    sluice_status status = SLUICE_OK;
    for (uint64_t at = 0, count; !status && at < range->count; at += count) {
        count = slc_least(range->count - at, room.bytes / 4);
        status = slc_file_read(file, offset + 4 * at, 4 * count, room.memory);
        if (!status) status = slc_bounce_write(&rt->memory.bounce, room.memory, SLUICE_FP32, data + at, count);
    }
    return status;
}

static sluice_status apply_range(loading *l, const slc_file *file, const slc_shard_range *range, uint64_t offset)
{
    if (is_own(l, range)) return is_mine(l, range) ? apply_own(l, file, range, offset) : SLUICE_OK;
    sluice_param *param = l->params[range->param];
    if (!param) return SLUICE_OK;
    uint32_t which = range->array ? 1 + l->states[range->array - 1] : 0;
    const slc_file_room room = slc_engine_file_room(l->rt);
    const char *state = range->array ? l->manifest.states[range->array - 1] : NULL;
    uint64_t at = range->first, end = range->first + range->count;
    while (at < end) {
        uint64_t count = end - at;
        /* The check compares what all ranks load, so that each reads what the others keep too. */
        if (!l->rt->check && !slc_param_kept(param, which, &at, &count)) break;
        float *place = l->rt->check ? NULL : slc_param_values_at(param, which, at, &count);
        if (!place) count = slc_least(count, room.bytes / 4);
        sluice_status status =
            slc_file_read(file, offset + 4 * (at - range->first), 4 * count, place ? place : room.memory);
        if (!status && l->rt->check) slc_check_written(param, state, at, count, room.memory);
        if (!status && !place) status = slc_param_put(param, which, at, count, room.memory);
        if (status) return status;
        at += count;
    }
    return SLUICE_OK;
}

/* Takes over the checkpoint's step and progress. Its phase comes first, so that the plan has the arrays that it saved.
 * The staging block is released for the change of plans. */
static sluice_status apply_progress(loading *l)
{
    sluice_runtime *rt = l->rt;
    rt->step = l->manifest.step;
    for (uint32_t p = 0; p < rt->model.param_count; p++) rt->model.params[p]->missed = 0;
    for (uint32_t p = 0; p < l->manifest.param_count; p++)
        if (l->params[p]) l->params[p]->missed = l->manifest.params[p].missed;
    if (!rt->compression.on) return SLUICE_OK;
    sluice_status status = slc_staging_claim(rt, false);
    if (!status) status = slc_checkpoint_progress_load(rt, &l->manifest, l->params);
    sluice_status claimed = slc_staging_claim(rt, true);
    if (!status) status = claimed;
    return status ? status : slc_checkpoint_own_reset(rt);
}

static void warn_of_errors(const loading *l)
{
    const char *name = l->rt->optimizer.name;
    const uint32_t ranks = (uint32_t)l->rt->replicas;
    uint32_t others = 0; /* that have saved some parameter */
    for (uint32_t p = 0; p < l->manifest.param_count; p++)
        if (l->own_ranks[p] && l->own_ranks[p] != ranks) others = l->own_ranks[p];
    if (l->rt->rank != 0) return;
    if (others)
        slc_log(SLC_LOG_WARN, "%s: saved by %u ranks, not %u: what the compression of %s left behind begins at 0",
                l->folder, others, ranks, name);
    else if (l->dropped)
        slc_log(SLC_LOG_WARN,
                "%s: what compression left behind of units that this plan does not compress is dropped (%llu arrays)",
                l->folder, (unsigned long long)l->dropped);
}

static sluice_status apply_checkpoint(loading *l)
{
    sluice_status status = apply_progress(l);
    for (uint32_t f = 0; !status && f < l->manifest.file_count; f++) {
        status = for_ranges(l, f, apply_range);
        count_own(l, f, l->own_before);
    }
    if (!status) warn_of_errors(l);
    return status;
}

/* Returns an error if ranks have put different bytes into their parameters and states; only under SLUICE_ENGINE_CHECK.
 */
static sluice_status compare_loaded(const loading *l)
{
    return slc_error_context(slc_check_call(l->rt, "checkpoint_load", NULL, NULL), "loading %s", l->folder);
}

/* ---- All together ---- */

/* The last name of a path, without the slashes after it; *length is the name's. */
static const char *last_name(const char *path, size_t *length)
{
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/') end--;
    for (begin = end; begin && path[begin - 1] != '/';) begin--;
    *length = end - begin;
    return path + begin;
}

/* Checks that this rank has found the checkpoint that rank 0 has found. A rank whose host does not show the newest one
 * must not take an older one, nor may rank 0 choose an older one for all. */
static sluice_status compare_found(const loading *l, const char *mine, const char *first)
{
    size_t length, first_length;
    const char *name = last_name(mine, &length), *first_name = last_name(first, &first_length);
    if (length == first_length && !memcmp(name, first_name, length)) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_MISMATCH,
        "the latest checkpoint that rank %d finds is %s, and rank 0 finds %s; checkpoints must be on a file "
        "system that all ranks share",
        l->rt->rank, mine, first);
}

/* Chooses the checkpoint: all ranks look for it, and read the one that rank 0 has found. */
static sluice_status choose_folder(loading *l, const char *dir)
{
    slc_checkpoint_path mine = {""};
    sluice_status status = slc_checkpoint_agree_reading(l->rt, slc_checkpoint_find(dir, &mine));
    l->found = mine;
    l->folder = l->found.text;
    if (!status) status = sluice_world_broadcast(l->rt->world, &l->found, sizeof l->found, 0);
    return status ? status : slc_checkpoint_agree(l->rt, compare_found(l, mine.text, l->folder));
}

/* Names on both sides, the checkpoint's first; the caller frees. NULL: no memory. */
static const char **all_names(const loading *l)
{
    const slc_manifest *m = &l->manifest;
    const uint32_t own = l->rt->model.param_count;
    const char **names = calloc((size_t)m->param_count + own + 1, sizeof *names);
    for (uint32_t p = 0; names && p < m->param_count; p++) names[p] = m->params[p].name;
    for (uint32_t p = 0; names && p < own; p++) names[m->param_count + p] = l->rt->model.params[p]->name;
    return names;
}

static sluice_status check_list(const loading *l)
{
    const uint32_t saved = l->manifest.param_count, own = l->rt->model.param_count;
    if (!l->list) return SLUICE_OK;
    if (l->rt->compression.on)
        return slc_error(
            SLUICE_ERR_UNSUPPORTED,
            "%s: a part of a checkpoint cannot be loaded for %s, whose phase is of all parameters together", l->folder,
            l->rt->optimizer.name);
    const char **names = all_names(l);
    if (!names) return slc_error(SLUICE_ERR_MEMORY, "names of parameters");
    sluice_status status = slc_load_list_check(l->list, names, saved, names + saved, own);
    free(names);
    return slc_error_context(status, "%s", l->folder);
}

/* Called after the loading; rank 0 alone tells. */
static void tell(const loading *l)
{
    const uint32_t saved = l->manifest.param_count, own = l->rt->model.param_count;
    const char **names = l->list && l->list->told && l->rt->rank == 0 ? all_names(l) : NULL;
    if (names) slc_load_list_tell(l->list, names, saved, names + saved, own);
    free(names);
}

static sluice_status check_checkpoint(loading *l)
{
    sluice_status status = read_manifest(l->folder, &l->manifest, &l->checksum);
    if (!status && l->manifest.unsealed && l->rt->rank == 0)
        slc_log(SLC_LOG_WARN, "%s/%s was written by a version that gave it no checksum: damage to it is not noticed",
                l->folder, SLC_CHECKPOINT_MANIFEST);
    if (!status) status = match_states(l);
    if (!status) status = check_list(l);
    if (!status) status = match_params(l);
    if (!status)
        status = slc_error_context(slc_checkpoint_progress_check(l->rt, &l->manifest, l->params), "%s", l->folder);
    if (!status) status = read_tables(l);
    if (!status) status = check_coverage(l);
    if (!status) status = count_owners(l);
    if (!status) status = read_extra(l->folder, &l->manifest.extra, &l->extra);
    return status ? status : verify(l);
}

/* Checks that all ranks have the same manifest: each opens the files by itself, and one path may lead to another folder
 * on each host. */
static sluice_status same_everywhere(const loading *l)
{
    char what[PATH_MAX + 32];
    snprintf(what, sizeof what, "checkpoint %s (%s)", l->folder, SLC_CHECKPOINT_MANIFEST);
    sluice_status status = sluice_world_same(l->rt->world, what, l->checksum);
    return status == SLUICE_ERR_MISMATCH ? slc_runtime_alike(l->rt, status) : status;
}

static void fini(loading *l)
{
    for (uint32_t f = 0; l->shards && f < l->manifest.file_count; f++) free(l->shards[f].ranges);
    free(l->shards);
    free(l->params);
    free(l->own_ranks);
    free(l->own_before);
    free(l->extra);
    slc_manifest_fini(&l->manifest);
}

static sluice_status load(sluice_runtime *rt, const char *call, const char *dir, const sluice_checkpoint_list *list,
                          void **extra, size_t *extra_bytes)
{
    sluice_status status = slc_checkpoint_enter(rt, dir, call);
    if (status) return status;
    loading l = {.rt = rt, .list = list};
    status = slc_runtime_fail(rt, slc_staging_claim(rt, true)); /* pieces of files are read there */
    if (!status && list) status = sluice_world_same(rt->world, "list of parameters to load", slc_load_list_hash(list));
    if (status == SLUICE_ERR_MISMATCH) status = slc_runtime_alike(rt, status);
    if (!status) status = choose_folder(&l, dir);
    if (!status) status = slc_checkpoint_agree_reading(rt, check_checkpoint(&l));
    if (!status) status = same_everywhere(&l);
    if (!status) {
        status = slc_checkpoint_agree(rt, apply_checkpoint(&l)); /* the runtime has changed: there is no way back */
        if (status) slc_runtime_fail(rt, status);
    }
    if (!status) status = compare_loaded(&l);
    if (!status) {
        if (extra_bytes) *extra_bytes = l.manifest.extra.bytes;
        if (extra) *extra = l.extra;
        if (extra) l.extra = NULL;
    }
    if (!status) tell(&l);
    fini(&l);
    sluice_status released = slc_runtime_fail(rt, slc_staging_claim(rt, false));
    slc_checkpoint_leave(rt);
    return status ? status : released;
}

sluice_status sluice_checkpoint_load(sluice_runtime *rt, const char *dir, void **extra, size_t *extra_bytes)
{
    return load(rt, "checkpoint_load", dir, NULL, extra, extra_bytes);
}

sluice_status sluice_checkpoint_load_list(sluice_runtime *rt, const char *dir, const sluice_checkpoint_list *given,
                                          void **extra, size_t *extra_bytes)
{
    sluice_checkpoint_list list = SLUICE_INIT(sluice_checkpoint_list);
    if (!given) return slc_error(SLUICE_ERR_ARGUMENT, "checkpoint_load_list: a list is needed");
    sluice_status status = slc_sized_read("sluice_checkpoint_list", NULL, given, sizeof list, &list);
    if (!status &&
        ((list.skip_count && !list.skip) || (list.rename_count && !list.rename) || (list.keep_count && !list.keep)))
        status = slc_error(SLUICE_ERR_ARGUMENT, "checkpoint_load_list: a number of names without the names");
    return status ? status : load(rt, "checkpoint_load_list", dir, &list, extra, extra_bytes);
}

sluice_status sluice_checkpoint_latest(const char *dir, bool *found, uint64_t *step)
{
    slc_saved *list = NULL;
    size_t count = 0;
    if (!dir || !*dir || !found || !step)
        return slc_error(SLUICE_ERR_ARGUMENT, "checkpoint_latest: a folder and results are needed");
    *found = false;
    sluice_status status = slc_checkpoint_list(dir, &list, &count);
    if (!status && count) {
        *found = true;
        *step = list[count - 1].step;
    }
    free(list);
    return status;
}

sluice_status sluice_checkpoint_extra(const char *dir, void **extra, size_t *extra_bytes)
{
    slc_manifest manifest = {0};
    uint32_t checksum;
    slc_checkpoint_path folder;
    if (!dir || !*dir || !extra || !extra_bytes)
        return slc_error(SLUICE_ERR_ARGUMENT, "checkpoint_extra: a folder and results are needed");
    sluice_status status = slc_checkpoint_find(dir, &folder);
    if (!status) status = read_manifest(folder.text, &manifest, &checksum);
    if (!status) status = read_extra(folder.text, &manifest.extra, extra);
    if (!status) *extra_bytes = manifest.extra.bytes;
    slc_manifest_fini(&manifest);
    return status;
}
