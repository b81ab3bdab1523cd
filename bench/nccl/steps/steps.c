/* A call becomes a number, equal for calls that are alike; the numbers' period is the step, or a part of it. */
#include "bench/nccl/steps/steps.h"

#include "bench/nccl/steps/period.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/integer.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"

#include <stdlib.h>

bool slc_nccl_moves_data(const slc_nccl_entry *entry)
{
    return entry->operation <= SLC_RECORD_RECEIVE && entry->operation != SLC_RECORD_SPLIT;
}

bool slc_nccl_calls_alike(const slc_nccl_entry *a, const slc_nccl_entry *b)
{
    return a->communicator == b->communicator && a->operation == b->operation && a->dtype == b->dtype &&
           a->redop == b->redop && a->count == b->count && a->peer == b->peer;
}

int slc_nccl_device(const slc_nccl_process *process, unsigned nth)
{
    const slc_record_communicator *rows = process->communicators;
    for (uint32_t i = 0; i < process->header.communicators; i++) {
        bool seen = rows[i].device < 0;
        for (uint32_t k = 0; k < i && !seen; k++) seen = rows[k].device == rows[i].device;
        if (!seen && !nth--) return rows[i].device;
    }
    return -1;
}

/* A call as one number, equal for calls that are alike. */
static uint64_t token(const slc_nccl_entry *e)
{
    const uint64_t what[] = {(uint64_t)e->communicator << 32 | e->operation, (uint64_t)e->dtype << 32 | e->redop,
                             e->count, (uint64_t)e->peer};
    return slc_fnv(SLC_FNV_START, what, sizeof what);
}

static int64_t pause_before(const slc_nccl_steps *s, size_t call)
{
    return call ? s->calls[call]->time_ns - s->calls[call - 1]->time_ns : 0;
}

/* Sorts the pauses before the calls at one place of a step of `length` calls into `room`; the first call of all has no
 * pause before it. Returns how many there are. */
static size_t pauses_at(const double *pauses, size_t count, size_t length, size_t place, double *room)
{
    size_t samples = 0;
    for (size_t i = place ? place : length; i < count; i += length) room[samples++] = pauses[i];
    slc_sort(room, samples);
    return samples;
}

/* The place with the longest pauses begins the step, if nearly all of them are longer than most at any other place, and
 * if they are a fifth of the step (a pause for a checkpoint every many steps is not). Returns the place, or `length`:
 * the pauses do not tell. */
static size_t place_of_pause(const double *pauses, size_t count, size_t length, double *room)
{
    const double longer = 1.5, least_share = 0.2;
    double longest = 0, pause = 0, step = 0;
    double high = 0, second_high = 0; /* the medians of two places, that of `high_place` the highest */
    size_t best = length, high_place = 0;
    for (size_t place = 0; place < length; place++) {
        size_t last = pauses_at(pauses, count, length, place, room) - 1;
        double median = room[last / 2];
        step += median;
        if (median > high) {
            second_high = high;
            high = median;
            high_place = place;
        } else if (median > second_high) {
            second_high = median;
        }
        if (room[last / 4] <= longest) continue;
        longest = room[last / 4];
        pause = median;
        best = place;
    }
    double others = high_place == best ? second_high : high;
    return longest > longer * others && pause > least_share * step ? best : length;
}

/* Finds where a step begins and how long it is. It is several periods if layers are alike: as many as can be between
 * the longest pauses. If pauses do not tell, it is one period, and begins with the stretch. */
static void find_step(slc_nccl_steps *s, const slc_period *found, double *room)
{
    enum { LEAST_SAMPLES = 4, MOST_PERIODS = 256, ENOUGH_CALLS = 1 << 12, ENOUGH_PERIODS = 16 };
    double *pauses = room, *sorted = room + s->call_count;
    size_t count = slc_least(found->end - found->first, slc_most(ENOUGH_CALLS, ENOUGH_PERIODS * found->length));
    for (size_t i = 0; i < count; i++) pauses[i] = i ? (double)pause_before(s, found->first + i) : 0;
    s->first = found->first;
    s->length = found->length;
    for (size_t n = 1; n <= MOST_PERIODS && n * found->length <= count / LEAST_SAMPLES; n++) {
        size_t place = place_of_pause(pauses, count, n * found->length, sorted);
        if (place == n * found->length) continue;
        s->first = found->first + place;
        s->length = n * found->length;
    }
    s->count = (found->end - s->first) / s->length;
}

static void describe(const slc_nccl_process *process, slc_nccl_steps *s, const slc_period *found, double *room)
{
    find_step(s, found, room);
    for (size_t i = 0; i < s->length; i++) s->bytes += slc_nccl_entry_bytes(process, s->calls[s->first + i]);
    for (size_t i = 1; i < s->count; i++)
        room[i - 1] =
            (double)(s->calls[s->first + i * s->length]->time_ns - s->calls[s->first + (i - 1) * s->length]->time_ns) *
            1e-9;
    s->period_s = slc_median(room, s->count - 1);
}

static void list_calls(const slc_nccl_process *process, int device, slc_nccl_steps *out)
{
    for (size_t i = 0; i < process->entry_count; i++) {
        const slc_nccl_entry *e = &process->entries[i];
        if (slc_nccl_moves_data(e) && !(e->flags & SLC_RECORD_FAILED) &&
            e->communicator != SLC_RECORD_NO_COMMUNICATOR && process->communicators[e->communicator].device == device)
            out->calls[out->call_count++] = e;
    }
}

/* Finds the stretch that repeats among the latest calls, and goes back to where it began. */
static bool find_stretch(const uint64_t *tokens, size_t count, slc_period *out)
{
    enum { LATEST = 1 << 14 }; /* finding takes the square of it */
    size_t skipped = count > LATEST ? count - LATEST : 0;
    if (!slc_period_find(tokens + skipped, count - skipped, true, out)) return false;
    out->first += skipped;
    out->end += skipped;
    while (out->first && tokens[out->first - 1] == tokens[out->first - 1 + out->length]) out->first--;
    return true;
}

sluice_status slc_nccl_steps_find(const slc_nccl_process *process, int device, slc_nccl_steps *out)
{
    size_t most = process->entry_count + 1;
    *out = (slc_nccl_steps){.calls = malloc(most * sizeof *out->calls)};
    uint64_t *tokens = malloc(most * sizeof *tokens);
    double *room = malloc(2 * most * sizeof *room);
    slc_period period;
    sluice_status status = SLUICE_OK;
    if (out->calls && tokens && room) {
        list_calls(process, device, out);
        for (size_t i = 0; i < out->call_count; i++) tokens[i] = token(out->calls[i]);
        if (find_stretch(tokens, out->call_count, &period)) describe(process, out, &period, room);
    } else {
        status = slc_error(SLUICE_ERR_MEMORY, "steps of %s", process->path);
    }
    free(room);
    free(tokens);
    return status;
}

void slc_nccl_steps_free(slc_nccl_steps *steps)
{
    free(steps->calls);
    *steps = (slc_nccl_steps){0};
}
