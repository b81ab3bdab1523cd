/* Records of all ranks become times of items, pass by pass; then they are drawn as simulated ones are.
 * tests/calls/every_call_test.c covers this file. */
#include "lib/base/host/boot_id.h"
#include "lib/base/status.h"
#include "lib/engine/measure/recording.h"
#include "sched/simulate/trace_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACED_STEPS = 4 };
static const double short_wait_s = 20e-6; /* what asking costs is no exposure */

/* The head of what a rank sends: its numbers and how many records follow. */
typedef struct {
    uint64_t barrier_ns, count;
    char boot[SLC_BOOT_ID_BYTES]; /* names the kernel whose clock this is */
} rank_head;

/* One rank's passes as times since the trace's beginning. NaN: not known. */
typedef struct {
    const slc_recorded *from;
    int rank;
    uint32_t first_pass, pass_count;
    slc_item_times *times;               /* [pass][item] */
    double *waited_from_s, *waited_to_s; /* [pass][item]: of the compute lane, and what the step's end waits for */
    double end_s;                        /* the last moment of all */
} rank_times;

static uint32_t item_count(const slc_recorded *from)
{
    return from->plan->train.item_count;
}

/* ---- Collecting ---- */

/* Chooses the steps that are shown: the last ones of the plan that runs. */
static size_t choose_records(const slc_recorded *from, slc_moment *out)
{
    size_t counts[SLC_MOMENT_LANES], kept = 0, all = 0;
    uint32_t last = 0;
    for (int lane = 0; lane < SLC_MOMENT_LANES; lane++) {
        counts[lane] = slc_recording_read(from->recording, (slc_moment_lane)lane, out + all);
        all += counts[lane];
    }
    for (size_t i = 0; i < counts[SLC_MOMENT_COMPUTE]; i++)
        if (out[i].plan == from->plan_number && out[i].pass > last) last = out[i].pass;
    for (size_t i = 0; i < all; i++)
        if (out[i].plan == from->plan_number && out[i].pass + TRACED_STEPS > last) out[kept++] = out[i];
    return kept;
}

/* *all: [size][*most] records; *heads: [size]. */
static sluice_status collect(sluice_world *world, const slc_recorded *from, rank_head **heads, slc_moment **all,
                             size_t *most)
{
    size_t size = (size_t)sluice_world_size(world);
    rank_head mine = {0};
    slc_moment *records = calloc(2 * SLC_RECORDING_MOMENTS, sizeof *records);
    *heads = calloc(size, sizeof **heads);
    *all = NULL;
    *most = 1;
    sluice_status status = records && *heads ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "trace of %zu ranks", size);
    if (!status) status = sluice_world_barrier(world);
    mine.barrier_ns = slc_clock_ns();
    slc_boot_id(mine.boot);
    if (!status) mine.count = choose_records(from, records);
    if (!status) status = sluice_world_all_gather(world, &mine, sizeof mine, *heads);
    for (size_t r = 0; !status && r < size; r++)
        if ((*heads)[r].count > *most) *most = (*heads)[r].count;
    if (!status) {
        *all = calloc(size * *most, sizeof **all);
        status = *all ? sluice_world_all_gather(world, records, *most * sizeof *records, *all)
                      : slc_error(SLUICE_ERR_MEMORY, "trace of %zu ranks", size);
    }
    free(records);
    return status;
}

/* ---- From records to times ---- */

static void rank_times_fini(rank_times *t)
{
    free(t->times);
    free(t->waited_from_s);
    free(t->waited_to_s);
}

static sluice_status rank_times_init(rank_times *t, const slc_recorded *from, int rank, const slc_moment *records,
                                     size_t count)
{
    uint32_t first = UINT32_MAX, last = 0;
    for (size_t i = 0; i < count; i++) {
        if (records[i].pass < first) first = records[i].pass;
        if (records[i].pass > last) last = records[i].pass;
    }
    *t = (rank_times){.from = from, .rank = rank, .first_pass = first, .pass_count = count ? last - first + 1 : 0};
    size_t room = (size_t)t->pass_count * item_count(from);
    t->times = malloc((room + 1) * sizeof *t->times);
    t->waited_from_s = malloc((room + 1) * sizeof *t->waited_from_s);
    t->waited_to_s = malloc((room + 1) * sizeof *t->waited_to_s);
    if (!t->times || !t->waited_from_s || !t->waited_to_s) {
        rank_times_fini(t);
        return slc_error(SLUICE_ERR_MEMORY, "trace of rank %d", rank);
    }
    for (size_t i = 0; i < room; i++) {
        t->times[i] = (slc_item_times){NAN, NAN, NAN, NAN};
        t->waited_from_s[i] = t->waited_to_s[i] = NAN;
    }
    return SLUICE_OK;
}

static void note(rank_times *t, const slc_moment *record, double at_s)
{
    size_t at = (size_t)(record->pass - t->first_pass) * item_count(t->from) + record->item;
    slc_item_times *times = &t->times[at];
    bool computed = slc_on_compute_lane(&t->from->plan->train.items[record->item]);
    if (at_s > t->end_s) t->end_s = at_s;
    switch ((slc_moment_kind)record->kind) {
    case SLC_MOMENT_STEP_WAITS:
    case SLC_MOMENT_WAITS: t->waited_from_s[at] = at_s; break;
    case SLC_MOMENT_STEP_WAITED: t->waited_to_s[at] = at_s; break;
    case SLC_MOMENT_BEGINS:
        times->open_s = at_s;
        if (computed) times->start_s = t->waited_to_s[at] = at_s;
        break;
    case SLC_MOMENT_WORKS: times->start_s = at_s; break;
    case SLC_MOMENT_WORKED: times->end_s = at_s; break;
    case SLC_MOMENT_ENDS:
        times->over_s = at_s;
        if (isnan(times->end_s)) times->end_s = at_s;
        break;
    case SLC_MOMENT_RECOMPUTED: break; /* no recording has it */
    }
}

/* Finds when each operation began: the wire works on them one after another, in their order. */
static void find_starts(rank_times *t)
{
    double free_s = -INFINITY;
    for (size_t i = 0; i < (size_t)t->pass_count * item_count(t->from); i++) {
        const slc_item *item = &t->from->plan->train.items[i % item_count(t->from)];
        slc_item_times *times = &t->times[i];
        if (slc_on_compute_lane(item) || slc_is_on_thread(item->kind) || isnan(times->end_s)) continue;
        if (slc_is_message(item->kind)) { /* each channel is a lane of its own */
            times->start_s = times->open_s;
            continue;
        }
        times->start_s = fmin(fmax(times->open_s, free_s), times->end_s);
        free_s = times->end_s;
    }
}

/* ---- Waits ---- */

static bool later_over(const slc_item_times *times, uint32_t item, double *over_s)
{
    if (!times || !(times[item].over_s > *over_s)) return false;
    *over_s = times[item].over_s;
    return true;
}

/* Finds the operation that was over last, among those that the plan makes the slot wait for. */
static void find_cause(const slc_item *slot, const slc_program *program, const slc_item_times *items,
                       const slc_item_times *previous, slc_exposure *exposure)
{
    double over_s = -INFINITY;
    for (uint32_t a = 0; a < slot->after_count; a++) {
        const slc_after *after = &slot->after[a];
        if (slc_on_compute_lane(&program->items[after->item])) continue;
        if (!later_over(after->previous ? previous : items, after->item, &over_s)) continue;
        exposure->cause = after->item;
        exposure->previous = after->previous;
    }
}

/* Finds the operation of this pass or the one before that ran longest during the wait. */
static void find_busy(const rank_times *t, uint32_t pass, slc_exposure *exposure)
{
    const slc_program *program = &t->from->plan->train;
    double most_s = 0;
    for (uint32_t p = pass ? pass - 1 : 0; p <= pass; p++)
        for (uint32_t i = 0; i < program->item_count; i++) {
            const slc_item_times *times = &t->times[(size_t)p * program->item_count + i];
            double both_s = fmin(times->end_s, exposure->to_s) - fmax(times->start_s, exposure->from_s);
            if (slc_on_compute_lane(&program->items[i]) || isnan(times->start_s + times->end_s) || both_s <= most_s)
                continue;
            most_s = both_s;
            exposure->busy = i;
        }
}

static uint32_t find_exposures(const rank_times *t, uint32_t pass, slc_exposure *out)
{
    const slc_program *program = &t->from->plan->train;
    size_t first = (size_t)pass * program->item_count;
    const slc_item_times *items = t->times + first, *previous = pass ? items - program->item_count : NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->item_count; i++) {
        double from_s = t->waited_from_s[first + i], to_s = t->waited_to_s[first + i];
        bool slot = slc_on_compute_lane(&program->items[i]);
        if (!(to_s - from_s > short_wait_s)) continue;
        slc_exposure *exposure = &out[count++];
        *exposure = (slc_exposure){slot ? i : SLC_NONE, slot ? SLC_NONE : i, false, SLC_NONE, from_s, to_s};
        if (slot) find_cause(&program->items[i], program, items, previous, exposure);
        find_busy(t, pass, exposure);
    }
    return count;
}

/* ---- Memory ---- */

static size_t find_spans(const rank_times *t, slc_claim_span *out)
{
    const slc_program *program = &t->from->plan->train;
    size_t count = 0;
    for (uint32_t p = 0; p < t->pass_count; p++)
        for (uint32_t c = 0; c < program->claim_count; c++) {
            const slc_claim *claim = &program->claims[c];
            uint32_t end_pass = p + slc_claim_wraps(program, claim);
            double from_s = t->times[(size_t)p * program->item_count + claim->from].open_s, to_s = NAN;
            if (end_pass < t->pass_count) to_s = t->times[(size_t)end_pass * program->item_count + claim->to].over_s;
            if (isnan(from_s)) continue;
            out[count++] = (slc_claim_span){claim, from_s, isnan(to_s) ? t->end_s : to_s};
        }
    return count;
}

static sluice_status trace_memory(slc_trace *trace, const rank_times *t)
{
    slc_memory_series series;
    slc_claim_span *spans = malloc(((size_t)t->pass_count * t->from->plan->train.claim_count + 1) * sizeof *spans);
    if (!spans) return slc_error(SLUICE_ERR_MEMORY, "trace of rank %d", t->rank);
    size_t count = find_spans(t, spans);
    double begin_s = INFINITY;
    for (size_t s = 0; s < count; s++) begin_s = fmin(begin_s, spans[s].from_s);
    sluice_status status = slc_memory_series_of(t->from->plan, spans, count, count ? begin_s : 0, 1e-7, &series);
    if (status) goto free_spans;
    slc_trace_memory(trace, t->rank, 0, &series);
    slc_memory_series_fini(&series);
free_spans:
    free(spans);
    return status;
}

/* ---- Writing ---- */

static sluice_status trace_rank(slc_trace *trace, const rank_times *t)
{
    uint32_t items = item_count(t->from);
    char name[64];
    slc_exposure *exposures = malloc((items + 1) * sizeof *exposures);
    if (!exposures) return slc_error(SLUICE_ERR_MEMORY, "trace of rank %d", t->rank);
    snprintf(name, sizeof name, t->from->stages ? "rank %d: stage %u of %u" : "rank %d", t->rank, t->from->stage,
             t->from->stages);
    slc_trace_process(trace, t->rank, name);
    for (uint32_t p = 0; p < t->pass_count; p++) {
        const slc_item_times *times = t->times + (size_t)p * items;
        uint32_t count = find_exposures(t, p, exposures);
        slc_trace_pass(trace, t->rank, t->first_pass + p, 0, times, p ? times - items : NULL, exposures, count);
    }
    free(exposures);
    return trace_memory(trace, t);
}

/* Returns how far a rank's clock is ahead of rank 0's: 0 on one host, which has one clock; elsewhere as far as their
 * readings at one barrier are apart. */
static int64_t clock_ahead_ns(const rank_head *rank, const rank_head *first)
{
    bool same = *first->boot && !strcmp(rank->boot, first->boot);
    return same ? 0 : (int64_t)(rank->barrier_ns - first->barrier_ns);
}

static int64_t first_moment(const rank_head *heads, const slc_moment *all, size_t most, size_t size)
{
    int64_t first = INT64_MAX;
    for (size_t r = 0; r < size; r++)
        for (size_t i = 0; i < heads[r].count; i++) {
            int64_t at = (int64_t)all[r * most + i].ns - clock_ahead_ns(&heads[r], &heads[0]);
            if (at < first) first = at;
        }
    return first;
}

/* The records of all ranks: [size] heads, [size][most] moments. */
typedef struct {
    rank_head *heads;
    slc_moment *all;
    size_t most, size;
} records;

static sluice_status trace_records(slc_trace *trace, const slc_recorded *from, const records *of, size_t rank)
{
    rank_times t;
    const rank_head *head = &of->heads[rank];
    const slc_moment *own = of->all + rank * of->most;
    const int64_t zero_ns = first_moment(of->heads, of->all, of->most, of->size) + clock_ahead_ns(head, &of->heads[0]);
    sluice_status status = rank_times_init(&t, from, (int)rank, own, head->count);
    if (status) return status;
    for (size_t i = 0; i < head->count; i++) note(&t, &own[i], (double)((int64_t)own[i].ns - zero_ns) * 1e-9);
    find_starts(&t);
    status = trace_rank(trace, &t);
    rank_times_fini(&t);
    return status;
}

/* ---- Stages ---- */

/* Sends this rank's text to rank 0, which joins all of them to its trace. Texts have different lengths. */
static sluice_status join_texts(sluice_world *world, slc_trace *trace, const char *text)
{
    const size_t size = (size_t)sluice_world_size(world);
    uint64_t own = strlen(text) + 1, most = 0, *bytes = calloc(size, sizeof *bytes);
    char *all = NULL, *padded = NULL;
    sluice_status status = bytes ? sluice_world_all_gather(world, &own, sizeof own, bytes)
                                 : slc_error(SLUICE_ERR_MEMORY, "traces of %zu ranks", size);
    for (size_t r = 0; !status && r < size; r++)
        if (bytes[r] > most) most = bytes[r];
    free(bytes);
    if (status) return status;
    all = calloc(size, most);
    padded = calloc(1, most);
    if (padded) memcpy(padded, text, own);
    status = all && padded ? sluice_world_all_gather(world, padded, most, all)
                           : slc_error(SLUICE_ERR_MEMORY, "traces of %zu ranks", size);
    for (size_t r = 1; !status && sluice_world_rank(world) == 0 && r < size; r++)
        status = slc_trace_join(trace, all + r * most);
    free(all);
    free(padded);
    return status;
}

/* Stages have jobs and plans of their own, so each rank draws itself. */
static sluice_status trace_stages(sluice_world *world, const slc_recorded *from, const records *of, slc_trace *trace)
{
    char *text = NULL;
    sluice_status status = trace_records(trace, from, of, (size_t)sluice_world_rank(world));
    if (!status) status = slc_trace_text(trace, &text);
    if (!status) status = join_texts(world, trace, text);
    free(text);
    return status;
}

static sluice_status trace_all(sluice_world *world, const slc_recorded *from, const records *of, char **json)
{
    slc_trace *trace = NULL;
    const bool first = sluice_world_rank(world) == 0;
    if (!first && !from->stages) return SLUICE_OK;
    sluice_status status = slc_trace_create(from->job, from->plan, &trace);
    if (!status && from->stages) status = trace_stages(world, from, of, trace);
    for (size_t r = 0; !status && !from->stages && r < of->size; r++) status = trace_records(trace, from, of, r);
    if (!status && first) status = slc_trace_text(trace, json);
    slc_trace_destroy(trace);
    return status;
}

sluice_status sluice_runtime_trace(sluice_runtime *rt, char **json)
{
    if (json) *json = NULL;
    sluice_status ready = slc_engine_recorded_check(rt, json);
    if (ready) return ready;
    sluice_world *world = sluice_runtime_world(rt);
    slc_recorded from = slc_engine_recorded(rt);
    records of = {.size = (size_t)sluice_world_size(world)};
    sluice_status status = collect(world, &from, &of.heads, &of.all, &of.most);
    if (!status) status = trace_all(world, &from, &of, json);
    free(of.all);
    free(of.heads);
    return status;
}
