/* The period is found from anchors, places in the sequence: for each period p, how far the sequence is equal to itself
 * p later, forwards and backwards from the anchor. Gusfield's Z algorithm (Algorithms on Strings, 1.4) gives that for
 * all p in linear time, as in Main & Lorentz, "An O(n log n) algorithm for finding all repetitions in a string", 1984.
 */
#include "bench/nccl/steps.h"

#include "lib/base/hash/fnv.h"
#include "lib/base/integer.h"
#include "lib/base/median.h"
#include "lib/base/status.h"

#include <math.h>
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

/* Finds how many calls after the stretch's beginning a step begins: after the pause whose median is the longest. */
static size_t longest_pause(const slc_nccl_steps *s, const search *found, double *room)
{
    size_t best = 0;
    double longest = -1;
    for (size_t offset = 0; offset < found->period; offset++) {
        size_t samples = 0;
        for (size_t i = found->first + offset; i < found->end; i += found->period)
            if (i > found->first) room[samples++] = (double)pause_before(s, i);
        double pause = slc_median(room, samples);
        if (pause > longest) {
            longest = pause;
            best = offset;
        }
    }
    return best;
}

/* Before the period number `first` and each `every` ones after it the pause is long. */
typedef struct {
    size_t first, every; /* every 0: long pauses do not come at equal distances */
} step_rhythm;

/* Returns the index of the largest of `counts`. */
static size_t largest(const size_t *counts, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (counts[i] > counts[best]) best = i;
    return best;
}

/* Takes the most frequent distance between pauses of at least `least`, and the most frequent place in it. Four in five
 * long pauses must lie there, and four in five that lie there must be long: a program is held up now and then. `counts`
 * has room for count + 1. */
static step_rhythm find_rhythm(const double *pauses, size_t count, double least, size_t *counts)
{
    size_t all = 0, before = 0;
    memset(counts, 0, (count + 1) * sizeof *counts);
    for (size_t i = 0; i < count; i++) {
        if (pauses[i] < least) continue;
        if (all++) counts[i - before]++;
        before = i;
    }
    size_t every = largest(counts, count + 1);
    if (every < 2 || every > count / LEAST_REPEATS) return (step_rhythm){0};
    memset(counts, 0, every * sizeof *counts);
    for (size_t i = 0; i < count; i++)
        if (pauses[i] >= least) counts[i % every]++;
    size_t first = largest(counts, every), places = (count - first + every - 1) / every;
    if (counts[first] < LEAST_REPEATS || counts[first] * 5 < all * 4 || counts[first] * 5 < (places - 1) * 4)
        return (step_rhythm){0};
    return (step_rhythm){first, every};
}

/* Several periods are one step where layers are alike: the pause between steps is longer than those in a step. Tries
 * what divides the pauses best first. */
static step_rhythm rhythm_of_steps(const double *pauses, double *sorted, size_t count, size_t *counts)
{
    const double least_ratio = 1.5;
    memcpy(sorted, pauses, count * sizeof *sorted);
    slc_sort(sorted, count);
    for (double below = INFINITY;;) {
        double ratio = least_ratio;
        size_t split = 0;
        for (size_t i = slc_most(count - count / 2, 1); i < count; i++) {
            double here = sorted[i] / (sorted[i - 1] > 1 ? sorted[i - 1] : 1);
            if (here >= below || here <= ratio) continue;
            ratio = here;
            split = i;
        }
        if (!split) return (step_rhythm){0};
        step_rhythm found = find_rhythm(pauses, count, sorted[split], counts);
        if (found.every) return found;
        below = ratio;
    }
}

static void describe(const slc_nccl_process *process, slc_nccl_steps *s, const search *found, double *room,
                     size_t *counts)
{
    if (!found->period) return;
    s->length = found->period;
    s->first = found->first + longest_pause(s, found, room);
    s->count = (found->end - s->first) / s->length;
    for (size_t i = 0; i < s->count; i++) room[i] = (double)pause_before(s, s->first + i * s->length);
    step_rhythm rhythm = rhythm_of_steps(room, room + s->count, s->count, counts);
    if (rhythm.every) {
        s->first += rhythm.first * s->length;
        s->count = (s->count - rhythm.first) / rhythm.every;
        s->length *= rhythm.every;
    }
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
        describe(process, out, &s, room, matches);
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
