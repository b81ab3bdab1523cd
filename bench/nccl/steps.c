/* The period is found from anchors, places in the sequence: for each period p, how far the sequence is equal to itself
 * p later, forwards and backwards from the anchor. Gusfield's Z algorithm (Algorithms on Strings, 1.4) gives that for
 * all p in linear time, as in Main & Lorentz, "An O(n log n) algorithm for finding all repetitions in a string", 1984.
 */
#include "bench/nccl/steps.h"

#include "lib/base/hash/fnv.h"
#include "lib/base/integer.h"
#include "lib/base/median.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_REPEATS = 3, ANCHORS = 8 };

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

/* matches[i]: how many numbers of `text` from its ith on are equal to those from its beginning on. */
static void match_beginning(const uint64_t *text, size_t count, size_t *matches)
{
    size_t from = 0, to = 0; /* the match that reaches furthest */
    for (size_t i = 1; i < count; i++) {
        size_t n = i < to ? slc_least(to - i, matches[i - from]) : 0;
        while (i + n < count && text[n] == text[i + n]) n++;
        matches[i] = n;
        if (i + n > to) {
            from = i;
            to = i + n;
        }
    }
}

typedef struct {
    const uint64_t *tokens;
    size_t count;
    uint64_t *turned; /* room for 2 * count + 1 */
    size_t *ahead, *back;
    size_t first, end, period; /* the best stretch so far */
} search;

/* Looks at all stretches that hold the anchor and a period after it. */
static void search_from(search *s, size_t anchor)
{
    size_t n = s->count;
    match_beginning(s->tokens + anchor, n - anchor, s->ahead);
    /* Backwards: what lies before the anchor, turned round, then a number that is nowhere, then all, turned round. */
    for (size_t i = 0; i < anchor; i++) s->turned[i] = s->tokens[anchor - 1 - i];
    s->turned[anchor] = 0;
    for (size_t i = 0; i < n; i++) s->turned[anchor + 1 + i] = s->tokens[n - 1 - i];
    match_beginning(s->turned, anchor + 1 + n, s->back);
    for (size_t p = 1; p <= n / LEAST_REPEATS && anchor + p < n; p++) {
        size_t before = s->back[anchor + 1 + (n - anchor - p)];
        size_t covered = before + p + s->ahead[p], best = s->end - s->first;
        if (covered < LEAST_REPEATS * p || covered < best || (covered == best && p >= s->period)) continue;
        s->first = anchor - before;
        s->end = s->first + covered;
        s->period = p;
    }
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

/* Finds where a step begins and how long it is. It is several periods where layers are alike: as many as can be between
 * the longest pauses. Where pauses do not tell it is one period, and begins with the stretch. */
static void find_step(slc_nccl_steps *s, const search *found, double *room)
{
    enum { LEAST_SAMPLES = 4, MOST_PERIODS = 256, ENOUGH_CALLS = 1 << 12, ENOUGH_PERIODS = 16 };
    double *pauses = room, *sorted = room + s->call_count;
    size_t count = slc_least(found->end - found->first, slc_most(ENOUGH_CALLS, ENOUGH_PERIODS * found->period));
    for (size_t i = 0; i < count; i++) pauses[i] = i ? (double)pause_before(s, found->first + i) : 0;
    s->first = found->first;
    s->length = found->period;
    for (size_t n = 1; n <= MOST_PERIODS && n * found->period <= count / LEAST_SAMPLES; n++) {
        size_t place = place_of_pause(pauses, count, n * found->period, sorted);
        if (place == n * found->period) continue;
        s->first = found->first + place;
        s->length = n * found->period;
    }
    s->count = (found->end - s->first) / s->length;
}

static void describe(const slc_nccl_process *process, slc_nccl_steps *s, const search *found, double *room)
{
    if (!found->period) return;
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

sluice_status slc_nccl_steps_find(const slc_nccl_process *process, int device, slc_nccl_steps *out)
{
    size_t most = process->entry_count + 1;
    *out = (slc_nccl_steps){.calls = malloc(most * sizeof *out->calls)};
    uint64_t *tokens = malloc((3 * most + 1) * sizeof *tokens);
    size_t *matches = malloc((3 * most + 1) * sizeof *matches);
    double *room = malloc(2 * most * sizeof *room);
    sluice_status status = SLUICE_OK;
    if (out->calls && tokens && matches && room) {
        list_calls(process, device, out);
        size_t n = out->call_count;
        for (size_t i = 0; i < n; i++) tokens[i] = token(out->calls[i]);
        search s = {.tokens = tokens, .count = n, .turned = tokens + n, .ahead = matches, .back = matches + n};
        for (size_t i = 0; i < ANCHORS; i++)
            if (n * i / ANCHORS < n) search_from(&s, n * i / ANCHORS);
        describe(process, out, &s, room);
    } else {
        status = slc_error(SLUICE_ERR_MEMORY, "steps of %s", process->path);
    }
    free(room);
    free(matches);
    free(tokens);
    return status;
}

void slc_nccl_steps_free(slc_nccl_steps *steps)
{
    free(steps->calls);
    *steps = (slc_nccl_steps){0};
}
