/* Calls are numbered by what they do and where their data lies, for layers of one size differ by their addresses alone;
 * if addresses change from step to step, by what they do. nccl_profile_test.c covers this file. */
#include "bench/nccl/profile/job_steps.h"

#include "bench/nccl/profile/calls.h"
#include "bench/nccl/steps/period.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

/* A rank while its steps are looked for. */
typedef struct {
    const slc_rank_calls *calls;
    uint64_t *numbers; /* [call_count] */
    slc_period period;
    size_t begin; /* the call with which a step begins */
} rank_search;

/* ---- Periods ---- */

static uint64_t number_of(const slc_nccl_call *call, bool with_address)
{
    uint64_t sizes = slc_record_hash_term(call->operation, call->elements, call->dtype, call->redop, 0);
    uint64_t place = with_address ? call->address ^ call->part_count << 52 : call->part_count << 52;
    return sizes * SLC_RECORD_HASH_STEP ^ place;
}

static void number_calls(const rank_search *s, bool with_address)
{
    for (size_t i = 0; i < s->calls->call_count; i++) s->numbers[i] = number_of(&s->calls->calls[i], with_address);
}

static sluice_status refuse_period(const slc_rank_calls *calls)
{
    unsigned long long gone = (unsigned long long)calls->process->entries_gone;
    if (gone)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "rank %d: no step repeats %d times in the last %zu calls, and %llu older entries are gone; "
                         "record with a larger SLUICE_SHIM_ENTRIES",
                         calls->rank, SLC_PERIOD_REPETITIONS, calls->call_count, gone);
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "rank %d: no step repeats %d times in its %zu calls; record more steps, of equal lengths",
                     calls->rank, SLC_PERIOD_REPETITIONS, calls->call_count);
}

static sluice_status find_period(rank_search *s)
{
    slc_period placed = {0};
    size_t count = s->calls->call_count;
    s->numbers = calloc(count + 1, sizeof *s->numbers);
    if (!s->numbers) return slc_error(SLUICE_ERR_MEMORY, "%zu calls", count);
    number_calls(s, true);
    slc_period_find(s->numbers, count, false, &placed);
    number_calls(s, false);
    slc_period_find(s->numbers, count, true, &s->period);
    if (placed.repetitions && 2 * placed.covered >= s->period.covered) {
        number_calls(s, true);
        s->period = placed;
    }
    return s->period.repetitions ? SLUICE_OK : refuse_period(s->calls);
}

/* ---- Where a step begins ---- */

static bool reduces(const slc_nccl_call *call)
{
    return call->operation != SLC_RECORD_ALL_GATHER;
}

static bool same_operation(const slc_nccl_call *a, const slc_nccl_call *b)
{
    return number_of(a, false) == number_of(b, false);
}

/* Counts the gathers between the reduction before `at` and the next one, and finds the median time between these two.
 */
static sluice_status measure_stretch(const rank_search *s, size_t at, size_t *gathers, double *gap_ns)
{
    const slc_nccl_call *calls = s->calls->calls;
    size_t length = s->period.length, end = s->period.first + s->period.repetitions * length, count = 0;
    double *gaps = malloc(s->period.repetitions * sizeof *gaps);
    if (!gaps) return slc_error(SLUICE_ERR_MEMORY, "%zu steps", s->period.repetitions);
    *gathers = 0;
    while (*gathers < length && !reduces(&calls[s->period.first + (at - s->period.first + *gathers) % length]))
        ++*gathers;
    for (size_t i = at == s->period.first ? at + length : at; i + *gathers < end; i += length) {
        const slc_step_time *before = &calls[i - 1].time, *next = &calls[i + *gathers].time;
        if (before->end_ns && next->end_ns) gaps[count++] = (double)(next->begin_ns - before->end_ns);
    }
    *gap_ns = count ? slc_median(gaps, count) : 0;
    free(gaps);
    return SLUICE_OK;
}

static bool matches_step(const rank_search *s, size_t at, const slc_job_steps *steps)
{
    size_t first = s->period.first, length = s->period.length;
    if (length != steps->operation_count) return false;
    for (size_t i = 0; i < length; i++) {
        const slc_nccl_call *call = &s->calls->calls[first + (at - first + i) % length];
        const slc_step_operation *operation = &steps->operations[i];
        slc_nccl_call as_call = {.operation = operation->operation,
                                 .dtype = operation->dtype,
                                 .redop = operation->redop,
                                 .elements = operation->elements,
                                 .part_count = operation->part_count};
        if (!same_operation(call, &as_call)) return false;
    }
    return true;
}

/* A program begins with a step and ends with one, and what interrupts its steps does so between two of them. Finds the
 * call that both ends of the run of steps say a step begins with; returns false if they tell nothing or disagree. */
static bool ends_tell_begin(const rank_search *s, size_t *begin)
{
    const slc_nccl_process *process = s->calls->process;
    const slc_period *period = &s->period;
    bool start_tells = period->first > 0 || !process->entries_gone;
    bool end_tells = period->end < s->calls->call_count || process->state == SLC_NCCL_ENDED;
    size_t offset = (period->end - period->first) % period->length;
    if (start_tells && end_tells && offset) return false;
    *begin = period->first + (start_tells ? 0 : offset);
    return start_tells || end_tells;
}

static const slc_nccl_call *call_before(const rank_search *s, size_t at)
{
    return &s->calls->calls[at == s->period.first ? at + s->period.length - 1 : at - 1];
}

static bool may_begin(const rank_search *s, size_t at, const slc_job_steps *steps)
{
    return reduces(call_before(s, at)) && (!steps->operation_count || matches_step(s, at, steps));
}

/* Chooses the call with which this rank's step begins. If steps of other ranks are known, the choice makes this rank's
 * step the same as theirs. */
static sluice_status choose_begin(rank_search *s, const slc_job_steps *steps)
{
    size_t first = s->period.first, most = 0;
    double longest = 0;
    bool found = false;
    if (ends_tell_begin(s, &s->begin) && may_begin(s, s->begin, steps)) return SLUICE_OK;
    for (size_t at = first; at < first + s->period.length; at++) {
        size_t gathers = 0;
        double gap = 0;
        if (!may_begin(s, at, steps)) continue;
        sluice_status status = measure_stretch(s, at, &gathers, &gap);
        if (status) return status;
        if (found && (gathers < most || (gathers == most && gap <= longest))) continue;
        found = true;
        most = gathers;
        longest = gap;
        s->begin = at;
    }
    if (found) return SLUICE_OK;
    if (!steps->operation_count)
        return slc_error(SLUICE_ERR_ARGUMENT, "rank %d: no reduction is among the %zu operations that repeat",
                         s->calls->rank, s->period.length);
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "rank %d repeats other operations (%zu of them) than rank %d (%zu); sluice nccl --watch says where "
        "they part",
        s->calls->rank, s->period.length, steps->ranks[0].rank, steps->operation_count);
}

/* ---- The step, and its repetitions ---- */

static sluice_status note_operations(const rank_search *s, slc_job_steps *steps)
{
    size_t first = s->period.first, length = s->period.length;
    steps->operations = calloc(length, sizeof *steps->operations);
    if (!steps->operations) return slc_error(SLUICE_ERR_MEMORY, "%zu operations", length);
    steps->operation_count = length;
    for (size_t i = 0; i < length; i++) {
        const slc_nccl_call *call = &s->calls->calls[first + (s->begin - first + i) % length];
        slc_step_operation *operation = &steps->operations[i];
        *operation = (slc_step_operation){.operation = call->operation,
                                          .dtype = call->dtype,
                                          .redop = call->redop,
                                          .elements = call->elements,
                                          .bytes = call->bytes,
                                          .part_count = call->part_count};
        operation->parts = malloc(call->part_count * sizeof *operation->parts);
        if (!operation->parts) return slc_error(SLUICE_ERR_MEMORY, "%zu calls", call->part_count);
        memcpy(operation->parts, &s->calls->parts[call->first_part], call->part_count * sizeof *operation->parts);
    }
    return SLUICE_OK;
}

static bool step_at(const rank_search *s, size_t at)
{
    size_t first = s->period.first, length = s->period.length;
    if (at + length > s->calls->call_count) return false;
    for (size_t i = 0; i < length; i++)
        if (s->numbers[at + i] != s->numbers[first + (s->begin - first + i) % length]) return false;
    return true;
}

/* Counts the steps of a rank, and keeps their times if `rank` has room for them. */
static size_t walk_steps(const rank_search *s, slc_rank_steps *rank)
{
    size_t count = 0, end = SIZE_MAX, length = s->period.length;
    for (size_t at = 0; at < s->calls->call_count;) {
        if (!step_at(s, at)) {
            at++;
            continue;
        }
        for (size_t i = 0; rank->times && i < length; i++)
            rank->times[count * length + i] = s->calls->calls[at + i].time;
        if (rank->follows_step) rank->follows_step[count] = at == end;
        if (rank->numbers) rank->numbers[count] = s->calls->calls[at].number;
        count++;
        end = at += length;
    }
    return count;
}

static sluice_status note_times(const rank_search *s, slc_job_steps *steps)
{
    slc_rank_steps *rank = &steps->ranks[steps->rank_count++];
    *rank = (slc_rank_steps){.rank = s->calls->rank};
    size_t count = walk_steps(s, rank);
    rank->times = calloc(count * s->period.length + 1, sizeof *rank->times);
    rank->follows_step = calloc(count + 1, sizeof *rank->follows_step);
    rank->numbers = calloc(count + 1, sizeof *rank->numbers);
    if (!rank->times || !rank->follows_step || !rank->numbers) return slc_error(SLUICE_ERR_MEMORY, "%zu steps", count);
    rank->step_count = walk_steps(s, rank);
    return SLUICE_OK;
}

/* ---- All together ---- */

static sluice_status search_rank(const slc_rank_calls *calls, slc_job_steps *steps)
{
    if (!calls->process->header.times_at)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: the shim took no times; record with SLUICE_SHIM_TIME=1",
                         calls->process->path);
    rank_search s = {.calls = calls};
    sluice_status status = find_period(&s);
    if (!status) status = choose_begin(&s, steps);
    if (!status && !steps->operation_count) status = note_operations(&s, steps);
    if (!status) status = note_times(&s, steps);
    free(s.numbers);
    return status;
}

sluice_status slc_job_steps_find(const slc_nccl_records *records, slc_job_steps *out)
{
    slc_job_calls calls;
    *out = (slc_job_steps){0};
    sluice_status status = slc_job_calls_collect(records, &calls);
    if (status) goto free_calls;
    *out = (slc_job_steps){.world = calls.world,
                           .key = calls.key,
                           .captured = calls.captured,
                           .elsewhere = calls.elsewhere,
                           .other = calls.other};
    out->ranks = calloc(calls.rank_count, sizeof *out->ranks);
    if (!out->ranks) status = slc_error(SLUICE_ERR_MEMORY, "%zu ranks", calls.rank_count);
    for (size_t r = 0; r < calls.rank_count && !status; r++) status = search_rank(&calls.ranks[r], out);
    if (status) slc_job_steps_free(out);
free_calls:
    slc_job_calls_free(&calls);
    return status;
}

void slc_job_steps_free(slc_job_steps *steps)
{
    for (size_t i = 0; i < steps->operation_count; i++) free(steps->operations[i].parts);
    for (size_t r = 0; r < steps->rank_count; r++) {
        free(steps->ranks[r].times);
        free(steps->ranks[r].follows_step);
        free(steps->ranks[r].numbers);
    }
    free(steps->operations);
    free(steps->ranks);
    *steps = (slc_job_steps){0};
}
