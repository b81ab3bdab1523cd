/* A communicator has the same key in every rank's records, so the largest one is found by its rows. Other communicators
 * of exactly the same ranks (a program may have one for gathers and one for reductions) are taken with it.
 * nccl_profile_test.c covers this file. */
#include "bench/nccl/profile/calls.h"

#include "lib/base/array.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static const int64_t at_once_ns = 50000;

enum {
    FEW_BYTES = 256,   /* an all-reduce this short is an agreement (a norm, a loss), */
    MANY_TIMES = 1000, /* if the longest operation has so many times its bytes */
    WORTH = 100,       /* a communicator counts if it carries this part of what the busiest one carries */
    NCCL_FLOAT16 = 6,
    NCCL_FLOAT32 = 7,
    NCCL_BFLOAT16 = 9,
    NCCL_SUM = 0,
    NCCL_AVG = 4,
};

/* ---- Entries ---- */

static bool trains_with(const slc_nccl_entry *e)
{
    bool type = e->dtype == NCCL_FLOAT16 || e->dtype == NCCL_FLOAT32 || e->dtype == NCCL_BFLOAT16;
    bool sums = e->redop == NCCL_SUM || e->redop == NCCL_AVG || e->redop == SLC_RECORD_CUSTOM_REDOP;
    if (!type || !e->count) return false;
    if (e->operation == SLC_RECORD_ALL_GATHER) return true;
    return (e->operation == SLC_RECORD_ALL_REDUCE || e->operation == SLC_RECORD_REDUCE_SCATTER) && sums;
}

static bool moves_data(const slc_nccl_entry *e)
{
    return e->operation >= SLC_RECORD_ALL_REDUCE && e->operation <= SLC_RECORD_RECEIVE &&
           e->operation != SLC_RECORD_SPLIT && e->communicator != SLC_RECORD_NO_COMMUNICATOR &&
           !(e->flags & SLC_RECORD_FAILED);
}

static const slc_record_communicator *row_of(const slc_nccl_process *process, const slc_nccl_entry *e)
{
    return &process->communicators[e->communicator];
}

/* ---- The communicator ---- */

typedef struct {
    uint64_t key, bytes; /* of reductions, by one of its ranks */
    uint32_t size;
} carrier;

static sluice_status add_carriers(const slc_nccl_process *process, carrier **list, size_t *count)
{
    uint32_t rows = process->header.communicators;
    carrier *more = realloc(*list, (*count + rows + 1) * sizeof *more);
    if (!more) return slc_error(SLUICE_ERR_MEMORY, "communicators");
    *list = more;
    carrier *mine = more + *count;
    for (uint32_t r = 0; r < rows; r++)
        mine[r] = (carrier){.key = process->communicators[r].key, .size = (uint32_t)process->communicators[r].size};
    *count += rows;
    for (size_t i = 0; i < process->entry_count; i++) {
        const slc_nccl_entry *e = &process->entries[i];
        if (!moves_data(e) || e->flags & SLC_RECORD_CAPTURED || !trains_with(e)) continue;
        if (e->operation != SLC_RECORD_ALL_GATHER) mine[e->communicator].bytes += slc_nccl_entry_bytes(process, e);
    }
    return SLUICE_OK;
}

static sluice_status choose_communicator(const slc_nccl_records *records, slc_job_calls *out)
{
    carrier *list = NULL, best = {0};
    size_t count = 0;
    uint64_t most = 0;
    sluice_status status = SLUICE_OK;
    for (size_t p = 0; p < records->count && !status; p++) status = add_carriers(&records->processes[p], &list, &count);
    for (size_t i = 0; !status && i < count; i++)
        if (list[i].bytes > most) most = list[i].bytes;
    for (size_t i = 0; !status && i < count; i++) {
        const carrier *c = &list[i];
        bool better = c->size > best.size || (c->size == best.size && c->bytes > best.bytes);
        if (c->bytes > most / WORTH && better) best = *c;
    }
    free(list);
    out->key = best.key;
    out->world = best.size;
    return status;
}

/* ---- Ranks ---- */

static sluice_status add_ranks(const slc_nccl_process *process, slc_job_calls *out)
{
    for (uint32_t r = 0; r < process->header.communicators; r++) {
        const slc_record_communicator *row = &process->communicators[r];
        if (row->key != out->key) continue;
        if (!SLC_ROOM_FOR_ONE(out->ranks, out->rank_count)) return slc_error(SLUICE_ERR_MEMORY, "ranks");
        out->ranks[out->rank_count++] = (slc_rank_calls){.process = process, .device = row->device, .rank = row->rank};
    }
    return SLUICE_OK;
}

static int by_rank(const void *a, const void *b)
{
    int x = ((const slc_rank_calls *)a)->rank, y = ((const slc_rank_calls *)b)->rank;
    return (x > y) - (x < y);
}

static bool has_row(const slc_rank_calls *rank, uint64_t key)
{
    for (uint32_t r = 0; r < rank->process->header.communicators; r++) {
        const slc_record_communicator *row = &rank->process->communicators[r];
        if (row->key == key && row->device == rank->device) return true;
    }
    return false;
}

/* Returns true if this communicator has exactly the ranks of the one that was chosen. */
static bool same_ranks(const slc_job_calls *job, const slc_nccl_records *records, const slc_record_communicator *row)
{
    size_t rows = 0;
    if (row->key == job->key) return true;
    if ((uint32_t)row->size != job->world) return false;
    for (size_t p = 0; p < records->count; p++)
        for (uint32_t r = 0; r < records->processes[p].header.communicators; r++)
            rows += records->processes[p].communicators[r].key == row->key;
    if (rows != job->rank_count) return false;
    for (size_t r = 0; r < job->rank_count; r++)
        if (!has_row(&job->ranks[r], row->key)) return false;
    return true;
}

/* ---- A rank's calls ---- */

/* The latest operation of each stream. */
typedef struct {
    uint64_t stream;
    int device;
    unsigned group;
    int64_t end_ns;
    bool follows; /* the first operation of its group */
} stream_end;

typedef struct {
    stream_end *ends;
    size_t count;
} streams;

static sluice_status find_stream(streams *s, uint64_t stream, int device, stream_end **out)
{
    for (size_t i = s->count; i-- > 0;)
        if (s->ends[i].stream == stream && s->ends[i].device == device) {
            *out = &s->ends[i];
            return SLUICE_OK;
        }
    if (!SLC_ROOM_FOR_ONE(s->ends, s->count)) return slc_error(SLUICE_ERR_MEMORY, "streams");
    s->ends[s->count] = (stream_end){.stream = stream, .device = device};
    *out = &s->ends[s->count++];
    return SLUICE_OK;
}

/* The operations of a group run together, so none of them follows another one. */
static sluice_status note_on_stream(streams *s, const slc_nccl_entry *e, int device, slc_step_time *time)
{
    stream_end *last = NULL;
    sluice_status status = find_stream(s, e->stream, device, &last);
    if (status) return status;
    *time = (slc_step_time){.begin_ns = e->begin_ns, .end_ns = e->end_ns};
    bool together = e->group && last->group == e->group;
    time->follows = together ? last->follows : last->end_ns && e->begin_ns < last->end_ns + at_once_ns;
    last->follows = time->follows;
    last->group = e->group;
    if (e->end_ns > last->end_ns) last->end_ns = e->end_ns;
    return SLUICE_OK;
}

static bool joins(const slc_nccl_call *last, const slc_nccl_entry *e)
{
    return e->group && e->group == last->group && e->operation == last->operation && e->dtype == last->dtype &&
           e->redop == last->redop && e->stream == last->stream;
}

static sluice_status add_call(slc_rank_calls *rank, const slc_nccl_entry *e, const slc_step_time *time)
{
    uint64_t bytes = slc_nccl_entry_bytes(rank->process, e), elements = bytes / slc_nccl_dtype_bytes(e->dtype);
    if (!SLC_ROOM_FOR_ONE(rank->parts, rank->part_count) || !SLC_ROOM_FOR_ONE(rank->calls, rank->call_count))
        return slc_error(SLUICE_ERR_MEMORY, "%zu calls", rank->part_count);
    rank->parts[rank->part_count++] = elements;
    slc_nccl_call *last = rank->call_count ? &rank->calls[rank->call_count - 1] : NULL;
    if (last && joins(last, e)) {
        last->elements += elements;
        last->bytes += bytes;
        last->part_count++;
        bool timed = time->end_ns && last->time.end_ns;
        if (!timed || time->begin_ns < last->time.begin_ns) last->time.begin_ns = timed ? time->begin_ns : 0;
        if (!timed || time->end_ns > last->time.end_ns) last->time.end_ns = timed ? time->end_ns : 0;
        return SLUICE_OK;
    }
    uint64_t address = e->operation == SLC_RECORD_ALL_GATHER ? e->receive : e->send;
    rank->calls[rank->call_count++] = (slc_nccl_call){.operation = e->operation,
                                                      .dtype = e->dtype,
                                                      .redop = e->redop,
                                                      .group = e->group,
                                                      .elements = elements,
                                                      .bytes = bytes,
                                                      .address = address,
                                                      .stream = e->stream,
                                                      .number = e->number,
                                                      .first_part = rank->part_count - 1,
                                                      .part_count = 1,
                                                      .time = *time};
    return SLUICE_OK;
}

static sluice_status collect_calls(const bool *taken, uint64_t few_bytes, slc_rank_calls *rank, slc_job_calls *out)
{
    const slc_nccl_process *process = rank->process;
    streams s = {0};
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; i < process->entry_count && !status; i++) {
        const slc_nccl_entry *e = &process->entries[i];
        if (!moves_data(e) || row_of(process, e)->device != rank->device) continue;
        if (e->flags & SLC_RECORD_CAPTURED) {
            out->captured++;
            continue;
        }
        if (e->flags & SLC_RECORD_COMPRESSED)
            status = slc_error(SLUICE_ERR_ARGUMENT,
                               "%s: the shim compressed calls, so their times say nothing of their "
                               "bytes; record without SLUICE_SHIM_COMPRESS",
                               process->path);
        slc_step_time time;
        bool agrees = e->operation == SLC_RECORD_ALL_REDUCE && slc_nccl_entry_bytes(process, e) <= few_bytes;
        if (!status) status = note_on_stream(&s, e, rank->device, &time);
        if (status) break;
        if (!taken[e->communicator])
            out->elsewhere++;
        else if (!trains_with(e) || agrees)
            out->other++;
        else
            status = add_call(rank, e, &time);
    }
    free(s.ends);
    return status;
}

static uint64_t agreement_bytes(const slc_nccl_process *process)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < process->entry_count; i++) {
        const slc_nccl_entry *e = &process->entries[i];
        uint64_t bytes = moves_data(e) && trains_with(e) ? slc_nccl_entry_bytes(process, e) : 0;
        if (bytes > longest) longest = bytes;
    }
    return longest / MANY_TIMES < FEW_BYTES ? longest / MANY_TIMES : FEW_BYTES;
}

static sluice_status collect_rank(const slc_nccl_records *records, slc_rank_calls *rank, slc_job_calls *out)
{
    const slc_nccl_process *process = rank->process;
    bool *taken = calloc((size_t)process->header.communicators + 1, sizeof *taken);
    if (!taken) return slc_error(SLUICE_ERR_MEMORY, "communicators");
    for (uint32_t r = 0; r < process->header.communicators; r++)
        taken[r] =
            process->communicators[r].device == rank->device && same_ranks(out, records, &process->communicators[r]);
    sluice_status status = collect_calls(taken, agreement_bytes(process), rank, out);
    free(taken);
    return status;
}

/* ---- All together ---- */

static sluice_status refuse(const slc_nccl_records *records)
{
    unsigned flags = 0;
    for (size_t p = 0; p < records->count; p++)
        for (size_t i = 0; i < records->processes[p].entry_count; i++) flags |= records->processes[p].entries[i].flags;
    if (flags & SLC_RECORD_INSIDE)
        return slc_error(SLUICE_ERR_ARGUMENT, "the records are those of NCCL's profiler plugin, which have neither "
                                              "times nor operators; preload the shim with SLUICE_SHIM_TIME=1");
    if (flags & SLC_RECORD_CAPTURED)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "all reductions were captured into CUDA graphs, whose replays call nothing; record a run of "
                         "the program without graphs");
    return slc_error(SLUICE_ERR_ARGUMENT, "the records have no all-reduce and no reduce-scatter of floating-point "
                                          "numbers; record a run that trains");
}

sluice_status slc_job_calls_collect(const slc_nccl_records *records, slc_job_calls *out)
{
    *out = (slc_job_calls){0};
    sluice_status status = choose_communicator(records, out);
    if (status) return status;
    if (!out->key) return refuse(records);
    for (size_t p = 0; p < records->count && !status; p++) status = add_ranks(&records->processes[p], out);
    if (status) return status;
    qsort(out->ranks, out->rank_count, sizeof *out->ranks, by_rank);
    for (size_t r = 0; r < out->rank_count && !status; r++) status = collect_rank(records, &out->ranks[r], out);
    return status;
}

void slc_job_calls_free(slc_job_calls *calls)
{
    for (size_t r = 0; r < calls->rank_count; r++) {
        free(calls->ranks[r].calls);
        free(calls->ranks[r].parts);
    }
    free(calls->ranks);
    *calls = (slc_job_calls){0};
}
