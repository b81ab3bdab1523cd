/* Elements are checksummed and written in pieces that stay in the cache between the two, straight from memory that
 * holds them as fp32. tests/checkpoint/save_behind_test.c covers this file. */
#include "lib/engine/checkpoint/rank_file.h"

#include "lib/base/element.h"
#include "lib/base/hash/crc32c.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/engine/checkpoint/checkpoint.h"
#include "lib/engine/checkpoint/file.h"
#include "lib/engine/model/buffers.h"
#include "lib/engine/model/param_arrays.h"
#include "lib/kernels/convert/convert.h"
#include "lib/plan/roles.h"

#include <stdlib.h>

enum { PIECE = 65536 }; /* elements */

/* ---- What the rank owns ---- */

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

/* ---- Where that lies, and until when ---- */

/* Returns the slot after which a parameter is updated: the last one that adds to its gradient, or, if it is split by
 * its uses, to the gradient of its rows. */
static uint32_t last_slot_of(const sluice_runtime *rt, const sluice_param *param)
{
    const slc_unit *unit = &rt->job.units[param->unit];
    uint32_t first, last, of_rows;
    if (param->frozen) return SLC_NONE;
    slc_unit_gradient_slots(&rt->job, unit, &first, &last);
    slc_unit_gradient_slots(&rt->job, slc_first_reader(&rt->job, unit), &first, &of_rows);
    return last > of_rows ? last : of_rows;
}

static slc_rank_range place_range(const sluice_runtime *rt, const slc_shard_range *range)
{
    const char *names[SLC_MANIFEST_OWN_MAX];
    const sluice_param *param = rt->model.params[range->param];
    const uint32_t states = rt->optimizer.state_count;
    slc_rank_range placed = {.dtype = SLUICE_FP32, .last_slot = last_slot_of(rt, param)};
    float *own = NULL;
    slc_checkpoint_own_names(rt, names);
    if (range->array > states) slc_checkpoint_own(param, names[range->array - states - 1], &own);
    placed.data = own ? own : slc_param_owned_at(param, range->array, range->first, range->count, &placed.dtype);
    return placed;
}

static int changed_first(const void *a, const void *b)
{
    const slc_rank_range *x = a, *y = b;
    if (x->last_slot != y->last_slot) return x->last_slot < y->last_slot ? -1 : 1;
    return (x->range > y->range) - (x->range < y->range);
}

static bool reads_room(const slc_rank_file *file)
{
    const sluice_runtime *rt = file->rt;
    bool wide = false;
    for (uint64_t i = 0; i < file->shard.range_count; i++) wide |= file->order[i].dtype != SLUICE_FP32;
    return wide && !slc_bounce_room(&rt->memory.bounce);
}

sluice_status slc_rank_file_list(sluice_runtime *rt, const char *folder, slc_rank_file *out)
{
    out->rt = rt;
    out->file = -1;
    out->shard = (slc_shard){.rank = (uint32_t)rt->rank, .world = (uint32_t)rt->size, .step = rt->step};
    out->path = slc_checkpoint_rank_file(folder, out->shard.rank);
    const uint64_t count = out->shard.range_count = list_ranges(rt, NULL);
    out->shard.ranges = calloc(count + 1, sizeof *out->shard.ranges);
    out->order = calloc(count + 1, sizeof *out->order);
    out->last_slots = calloc(count + 1, sizeof *out->last_slots);
    if (!out->shard.ranges || !out->order || !out->last_slots)
        return slc_error(SLUICE_ERR_MEMORY, "%llu ranges of a checkpoint", (unsigned long long)count);
    list_ranges(rt, out->shard.ranges);
    uint64_t offset = slc_shard_head_bytes(count);
    for (uint64_t i = 0; i < count; i++) {
        out->order[i] = place_range(rt, &out->shard.ranges[i]);
        out->order[i].range = i;
        out->order[i].offset = offset;
        offset += sizeof(float) * out->shard.ranges[i].count;
    }
    out->wrote.bytes = offset;
    if (count) qsort(out->order, count, sizeof *out->order, changed_first);
    for (uint64_t i = 0; i < count; i++) out->last_slots[i] = out->order[i].last_slot;
    if (!reads_room(out)) return SLUICE_OK;
    out->room = malloc(PIECE * sizeof *out->room);
    return out->room ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "a piece of a checkpoint");
}

void slc_rank_file_free(slc_rank_file *file)
{
    free(file->shard.ranges);
    free(file->order);
    free(file->last_slots);
    free(file->room);
}

bool slc_rank_file_goes_behind(const slc_rank_file *file)
{
    return !slc_bounce_room(&file->rt->memory.bounce) && !file->rt->compression.on;
}

/* ---- Writing ---- */

/* Finds a piece of a range as fp32 in host memory, and copies it only if it must: a file system does not see a device's
 * memory, and values may have to be widened. */
static sluice_status fetch(slc_rank_file *file, sluice_stream *stream, const slc_rank_range *from, uint64_t done,
                           uint64_t count, const float **piece)
{
    sluice_runtime *rt = file->rt;
    const void *data = slc_element(from->data, from->dtype, done);
    float *room = slc_bounce_room(&rt->memory.bounce);
    *piece = room ? room : file->room;
    if (room) return slc_bounce_read(&rt->memory.bounce, from->dtype, data, room, count);
    if (from->dtype != SLUICE_FP32) return slc_convert(stream, from->dtype, data, SLUICE_FP32, file->room, count);
    *piece = data;
    return SLUICE_OK;
}

static sluice_status write_range(slc_rank_file *file, sluice_stream *stream, const slc_rank_range *from)
{
    slc_shard_range *range = &file->shard.ranges[from->range];
    range->crc32c = 0;
    for (uint64_t done = 0, count; done < range->count; done += count) {
        const float *piece;
        count = slc_least(range->count - done, PIECE);
        if (!slc_writer_runs_behind(&file->rt->writer)) slc_comm_work(file->rt->comm, "writing");
        if (atomic_load(&file->gives_up))
            return slc_error(SLUICE_ERR_INTERRUPTED, "%s is not finished", file->path.text);
        sluice_status status = fetch(file, stream, from, done, count, &piece);
        if (status) return status;
        range->crc32c = slc_crc32c(range->crc32c, piece, sizeof *piece * count);
        status = slc_checkpoint_file_write(file->file, file->path.text, piece, sizeof *piece * count,
                                           from->offset + sizeof *piece * done);
        if (status) return status;
    }
    return SLUICE_OK;
}

static sluice_status write_ranges(slc_rank_file *file)
{
    sluice_stream stream = {0}; /* the thread's own */
    sluice_status status = file->room ? slc_stream_create(file->rt->device, 1, &stream) : SLUICE_OK;
    for (uint64_t i = 0; !status && i < file->shard.range_count; i++) {
        status = write_range(file, &stream, &file->order[i]);
        if (!status) slc_writer_wrote(&file->rt->writer, (uint32_t)i + 1);
    }
    if (file->room) slc_stream_destroy(&stream);
    return status;
}

/* Writes the file's head, last, when the checksums are known. */
static sluice_status write_head(slc_rank_file *file)
{
    const uint64_t bytes = slc_shard_head_bytes(file->shard.range_count);
    unsigned char *head = malloc(bytes);
    if (!head) return slc_error(SLUICE_ERR_MEMORY, "table of a checkpoint");
    slc_shard_encode(&file->shard, head);
    file->wrote.crc32c = file->shard.crc32c;
    sluice_status status = slc_checkpoint_file_write(file->file, file->path.text, head, bytes, 0);
    free(head);
    return status;
}

sluice_status slc_rank_file_write(slc_rank_file *file)
{
    file->status = slc_checkpoint_file_create(file->path.text, &file->file);
    if (!file->status) file->status = write_ranges(file);
    if (!file->status) file->status = write_head(file);
    return file->status;
}

sluice_status slc_rank_file_close(slc_rank_file *file)
{
    file->status = slc_checkpoint_file_close(file->file, file->path.text, file->status);
    file->file = -1;
    return file->status;
}
