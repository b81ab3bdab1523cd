/* Communicators are matched by their keys over processes; calls are added up by communicator, operation and dtype.
 * bench/nccl/nccl_test.c covers this file. */
#include "bench/nccl/summary/summary.h"

#include "bench/nccl/summary/time_shares.h"
#include "lib/base/array.h"
#include "lib/base/bisect.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"

#include <stdlib.h>

enum { OPERATIONS = SLC_RECORD_RECEIVE + 1, DTYPES = 13 /* the last: not known */ };

double slc_nccl_bus_factor(unsigned operation, int ranks)
{
    double n = ranks;
    if (ranks < 1) return 1;
    switch (operation) {
    case SLC_RECORD_ALL_REDUCE: return 2 * (n - 1) / n;
    case SLC_RECORD_REDUCE_SCATTER:
    case SLC_RECORD_ALL_GATHER:
    case SLC_RECORD_ALL_TO_ALL:
    case SLC_RECORD_GATHER:
    case SLC_RECORD_SCATTER: return (n - 1) / n;
    default: return 1;
    }
}

/* ---- Communicators ---- */

static int by_key_and_rank(const void *a, const void *b)
{
    const slc_nccl_rank *x = a, *y = b;
    if (x->row->key != y->row->key) return x->row->key < y->row->key ? -1 : 1;
    return x->row->rank < y->row->rank ? -1 : x->row->rank > y->row->rank;
}

static int by_appearance(const void *a, const void *b)
{
    const slc_nccl_communicator_sum *x = a, *y = b;
    if (x->first_row != y->first_row) return x->first_row < y->first_row ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Lists the ranks of all communicators that were made, those of one communicator after each other. */
static sluice_status list_ranks(slc_nccl_summary *s)
{
    size_t most = 1;
    for (size_t i = 0; i < s->records->count; i++) most += s->records->processes[i].header.communicators;
    s->ranks = calloc(most, sizeof *s->ranks);
    s->communicators = calloc(most, sizeof *s->communicators);
    if (!s->ranks || !s->communicators) return slc_error(SLUICE_ERR_MEMORY, "communicators");
    for (size_t i = 0; i < s->records->count; i++) {
        const slc_nccl_process *p = &s->records->processes[i];
        for (uint32_t k = 0; k < p->header.communicators; k++)
            if (p->communicators[k].key && p->communicators[k].state != SLC_RECORD_ROW_FREE)
                s->ranks[s->rank_count++] = (slc_nccl_rank){p, &p->communicators[k], 0};
    }
    qsort(s->ranks, s->rank_count, sizeof *s->ranks, by_key_and_rank);
    return SLUICE_OK;
}

static void add_transformed(slc_nccl_transformed *sum, const slc_record_communicator *row)
{
    sum->fused_calls += row->fused_calls;
    sum->fused_groups += row->fused_groups;
    sum->compressed_calls += row->compressed_calls;
    sum->bytes_compressed += row->bytes_compressed;
    sum->bytes_sent += row->bytes_sent_compressed;
    for (unsigned r = 0; r < SLC_RECORD_PASS_REASONS; r++) sum->passed[r] += row->passed[r];
}

static void add_rank(slc_nccl_communicator_sum *c, const slc_nccl_rank *rank)
{
    const slc_record_communicator *row = rank->row;
    if (row->parent_key) c->parent_key = row->parent_key;
    if (row->size > c->size) c->size = row->size;
    c->first_row = slc_least(c->first_row, (uint64_t)(row - rank->process->communicators));
    c->rank_count++;
    c->calls += row->calls;
    add_transformed(&c->transformed, row);
}

static sluice_status match_ranks(slc_nccl_summary *s)
{
    sluice_status status = list_ranks(s);
    if (status) return status;
    for (size_t i = 0; i < s->rank_count; i++) {
        bool new = !i || s->ranks[i].row->key != s->ranks[i - 1].row->key;
        if (new)
            s->communicators[s->communicator_count++] = (slc_nccl_communicator_sum){
                .key = s->ranks[i].row->key, .ranks = &s->ranks[i], .first_row = SLC_RECORD_COMMUNICATORS};
        add_rank(&s->communicators[s->communicator_count - 1], &s->ranks[i]);
    }
    qsort(s->communicators, s->communicator_count, sizeof *s->communicators, by_appearance);
    for (size_t i = 0; i < s->communicator_count; i++)
        for (size_t k = 0; k < s->communicators[i].rank_count; k++) s->communicators[i].ranks[k].communicator = i;
    return SLUICE_OK;
}

/* Finds the communicator with this key, which must be there. */
static size_t communicator_of(const slc_nccl_summary *s, uint64_t key)
{
    SLC_BISECT(size_t, next, 1, s->rank_count, s->ranks[next].row->key <= key);
    return s->ranks[next - 1].communicator;
}

/* ---- Traffic ---- */

static void add_call(slc_nccl_summary *s, slc_nccl_traffic *cell, const slc_nccl_process *p, const slc_nccl_entry *e,
                     double seconds)
{
    uint64_t bytes = slc_nccl_entry_bytes(p, e);
    unsigned class = 0;
    while (class + 1 < SLC_NCCL_SIZE_CLASSES && UINT64_C(1) << 2 * class < bytes) class ++;
    cell->calls++;
    cell->bytes += bytes;
    s->sizes[class].calls++;
    s->sizes[class].bytes += bytes;
    if (seconds <= 0) return;
    cell->timed_calls++;
    cell->timed_bytes += bytes;
    cell->timed_s += seconds;
}

static sluice_status add_process(slc_nccl_summary *s, const slc_nccl_process *p, slc_nccl_traffic *cells, size_t *rows)
{
    slc_nccl_time_share *shares = malloc((p->entry_count + 1) * sizeof *shares);
    if (!shares) return slc_error(SLUICE_ERR_MEMORY, "times of %s", p->path);
    sluice_status status = slc_nccl_time_shares_find(p, shares);
    for (uint32_t k = 0; k < p->header.communicators && s->rank_count; k++)
        rows[k] = communicator_of(s, p->communicators[k].key);
    for (size_t i = 0; !status && i < p->entry_count; i++) {
        const slc_nccl_entry *e = &p->entries[i];
        s->captured += (e->flags & SLC_RECORD_CAPTURED) != 0;
        s->failed += (e->flags & SLC_RECORD_FAILED) != 0;
        if (!slc_nccl_moves_data(e) || e->communicator == SLC_RECORD_NO_COMMUNICATOR ||
            !p->communicators[e->communicator].key || !s->communicator_count)
            continue;
        size_t dtype = slc_least(e->dtype, DTYPES - 1);
        add_call(s, &cells[(rows[e->communicator] * OPERATIONS + e->operation) * DTYPES + dtype], p, e,
                 shares[i].seconds);
    }
    s->entries += p->header.entries;
    s->entries_lost += p->entries_gone;
    s->entries_written += p->header.entries - p->entries_gone - p->entry_count;
    s->communicators_lost += p->header.communicators_lost;
    s->times_lost += p->header.times_lost;
    free(shares);
    return status;
}

static sluice_status add_traffic(slc_nccl_summary *s)
{
    size_t count = s->communicator_count * OPERATIONS * DTYPES;
    slc_nccl_traffic *cells = calloc(count + 1, sizeof *cells);
    size_t *rows = calloc(SLC_RECORD_COMMUNICATORS, sizeof *rows);
    s->traffic = cells;
    if (!cells || !rows) {
        free(rows);
        return slc_error(SLUICE_ERR_MEMORY, "traffic of %zu communicators", s->communicator_count);
    }
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < s->records->count; i++)
        status = add_process(s, &s->records->processes[i], cells, rows);
    for (size_t i = 0; i < count; i++) {
        if (!cells[i].calls) continue;
        slc_nccl_traffic *t = &cells[s->traffic_count++];
        *t = cells[i];
        t->communicator = &s->communicators[i / DTYPES / OPERATIONS];
        t->operation = (unsigned)(i / DTYPES % OPERATIONS);
        t->dtype = i % DTYPES == DTYPES - 1 ? 0xfe : (unsigned)(i % DTYPES);
    }
    free(rows);
    return status;
}

/* ---- Times ---- */

static int by_begin(const void *a, const void *b)
{
    const slc_nccl_entry *const *x = a, *const *y = b;
    return (*x)->begin_ns < (*y)->begin_ns ? -1 : (*x)->begin_ns > (*y)->begin_ns;
}

static sluice_status measure_busy(const slc_nccl_process *p, slc_nccl_busy *out)
{
    const slc_nccl_entry **timed = malloc((p->entry_count + 1) * sizeof *timed);
    if (!timed) return slc_error(SLUICE_ERR_MEMORY, "times of %s", p->path);
    size_t count = 0;
    int64_t busy = 0, end = 0;
    for (size_t i = 0; i < p->entry_count; i++)
        if (p->entries[i].end_ns > p->entries[i].begin_ns) timed[count++] = &p->entries[i];
    qsort(timed, count, sizeof *timed, by_begin);
    for (size_t i = 0; i < count; i++) {
        int64_t from = timed[i]->begin_ns > end ? timed[i]->begin_ns : end;
        if (timed[i]->end_ns <= from) continue;
        busy += timed[i]->end_ns - from;
        end = timed[i]->end_ns;
    }
    if (count) *out = (slc_nccl_busy){(double)busy * 1e-9, (double)(end - timed[0]->begin_ns) * 1e-9};
    free(timed);
    return SLUICE_OK;
}

static sluice_status measure_all_busy(slc_nccl_summary *s)
{
    sluice_status status = SLUICE_OK;
    s->busy = calloc(s->records->count + 1, sizeof *s->busy);
    if (!s->busy) return slc_error(SLUICE_ERR_MEMORY, "times of %zu processes", s->records->count);
    for (size_t i = 0; !status && i < s->records->count; i++)
        status = measure_busy(&s->records->processes[i], &s->busy[i]);
    return status;
}

/* ---- Steps ---- */

static int rank_on_device(const slc_nccl_process *p, int device)
{
    for (uint32_t i = 0; i < p->header.communicators; i++)
        if (p->communicators[i].device == device) return p->communicators[i].rank;
    return -1;
}

static sluice_status find_steps(slc_nccl_summary *s, const slc_nccl_process *p)
{
    sluice_status status = SLUICE_OK;
    int device;
    for (unsigned n = 0; !status && (device = slc_nccl_device(p, n)) >= 0; n++) {
        if (!SLC_ROOM_FOR_ONE(s->steps, s->steps_count)) return slc_error(SLUICE_ERR_MEMORY, "steps of %s", p->path);
        slc_nccl_device_steps *steps = &s->steps[s->steps_count++];
        *steps = (slc_nccl_device_steps){.process = p, .device = device, .rank = rank_on_device(p, device)};
        status = slc_nccl_steps_find(p, device, &steps->steps);
    }
    return status;
}

sluice_status slc_nccl_summarize(const slc_nccl_records *records, slc_nccl_summary *out)
{
    *out = (slc_nccl_summary){.records = records};
    sluice_status status = match_ranks(out);
    if (!status) status = add_traffic(out);
    if (!status) status = measure_all_busy(out);
    for (size_t i = 0; !status && i < records->count; i++) status = find_steps(out, &records->processes[i]);
    if (!status) status = slc_nccl_grouping_find(records, &out->grouping);
    return status;
}

void slc_nccl_summary_free(slc_nccl_summary *s)
{
    for (size_t i = 0; i < s->steps_count; i++) slc_nccl_steps_free(&s->steps[i].steps);
    slc_nccl_grouping_free(&s->grouping);
    free(s->steps);
    free(s->busy);
    free(s->traffic);
    free(s->communicators);
    free(s->ranks);
    *s = (slc_nccl_summary){0};
}
