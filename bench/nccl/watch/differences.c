/* Two entries with the same ordinal on the same communicator must be equal in what all ranks agree on. If the rings
 * have lost entries, the rolling hashes after the last collective that all called tell whether there was a difference
 * before.
 * compare_test.c covers this file. */
#include "bench/nccl/watch/faults.h"

#include "lib/base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPS = 4, LOOK_AHEAD = 16, ALIKE = 8, LOOK_BACK = 4096 };

typedef struct {
    const slc_nccl_members *all;
    const slc_nccl_communicator *communicator;
    uint64_t ordinal;
    size_t *group; /* of each member, counted from 0; those that have not called it: SIZE_MAX */
    size_t group_count;
    uint64_t *hashes; /* of each member, if entries are lost */
} difference;

static bool same_call(const slc_nccl_entry *a, const slc_nccl_entry *b)
{
    if (a->operation != b->operation) return false;
    if (a->operation == SLC_RECORD_SPLIT) return true; /* colours and keys are each rank's own */
    return a->count == b->count && a->dtype == b->dtype && a->redop == b->redop && a->peer == b->peer;
}

/* The first ordinal from n on that a member has kept; UINT64_MAX: none. */
static uint64_t next_kept(const slc_nccl_communicator *c, uint64_t n)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < c->member_count; i++) {
        const slc_nccl_member *m = &c->members[i];
        if (!m->first || !m->collective_count || m->called < n) continue;
        uint64_t kept = m->first > n ? m->first : n;
        if (kept < next) next = kept;
    }
    return next;
}

/* The ordinal of the first difference, or 0. */
static uint64_t first_difference(const slc_nccl_communicator *c)
{
    for (uint64_t n = next_kept(c, 1); n < UINT64_MAX; n = next_kept(c, n + 1)) {
        const slc_nccl_entry *one = NULL;
        for (size_t i = 0; i < c->member_count; i++) {
            const slc_nccl_entry *entry = slc_nccl_member_collective(&c->members[i], n);
            if (one && entry && !same_call(one, entry)) return n;
            if (entry) one = entry;
        }
    }
    return 0;
}

static void group_by_call(difference *d)
{
    const slc_nccl_communicator *c = d->communicator;
    const slc_nccl_entry *of_group[MOST_GROUPS + 1];
    for (size_t i = 0; i < c->member_count; i++) {
        const slc_nccl_entry *entry = slc_nccl_member_collective(&c->members[i], d->ordinal);
        d->group[i] = SIZE_MAX;
        if (!entry) continue;
        size_t g = 0;
        while (g < d->group_count && !same_call(of_group[g], entry)) g++;
        if (g == d->group_count && g < MOST_GROUPS) of_group[d->group_count++] = entry;
        d->group[i] = g < MOST_GROUPS ? g : MOST_GROUPS; /* the last one holds all others */
    }
}

/* Collects the ranks of a group; returns the first one's member. */
static const slc_nccl_member *ranks_of_group(const difference *d, size_t group, int *ranks, size_t *count)
{
    const slc_nccl_communicator *c = d->communicator;
    const slc_nccl_member *first = NULL;
    *count = 0;
    for (size_t i = 0; i < c->member_count; i++) {
        if (d->group[i] != group) continue;
        if (!first) first = &c->members[i];
        ranks[(*count)++] = c->members[i].rank;
    }
    return first;
}

/* Returns true if a's sequence from `from_a` on goes on as b's from `from_b` on. At least one pair must be there. */
static bool goes_on_as(const slc_nccl_member *a, uint64_t from_a, const slc_nccl_member *b, uint64_t from_b)
{
    for (uint64_t i = 0; i < LOOK_AHEAD; i++) {
        const slc_nccl_entry *x = slc_nccl_member_collective(a, from_a + i);
        const slc_nccl_entry *y = slc_nccl_member_collective(b, from_b + i);
        if (!x || !y) return i > 0;
        if (!same_call(x, y)) return false;
    }
    return true;
}

static const char *hint_for_arguments(const slc_nccl_entry *a, const slc_nccl_entry *b)
{
    if (a->operation != b->operation) return "all ranks must call the same operations in the same order";
    if (a->dtype != b->dtype)
        return "all ranks must pass the same dtype: look at where it is chosen (mixed precision?)";
    if (a->count != b->count)
        return "all ranks must pass the same count: look for data that is divided unevenly, or a last batch that is "
               "smaller";
    if (a->redop != b->redop) return "all ranks must pass the same operator";
    return "all ranks must name the same root";
}

/* Writes the hint for two groups of one size, of which no majority says which is wrong. */
static const char *hint_for_equals(FILE *out, const difference *d, int *ranks)
{
    size_t count;
    const slc_nccl_member *m[2] = {ranks_of_group(d, 0, ranks, &count), ranks_of_group(d, 1, ranks, &count)};
    const slc_nccl_entry *call[2], *next[2];
    for (int g = 0; g < 2; g++) {
        call[g] = slc_nccl_member_collective(m[g], d->ordinal);
        next[g] = slc_nccl_member_collective(m[g], d->ordinal + 1);
    }
    for (int g = 0; g < 2; g++) {
        if (!m[g]->failed || m[g]->failed->number + 1 != call[g]->number) continue;
        ranks_of_group(d, (size_t)g, ranks, &count);
        fputs("; the call before it of ", out);
        slc_nccl_write_ranks(out, ranks, count);
        fputs(" returned an error", out);
        return "look at the status of the call before";
    }
    if (next[0] && next[1] && same_call(call[0], next[1]) && same_call(next[0], call[1]))
        return "the two calls are made in the opposite order: all ranks must call in the same order";
    for (int g = 0; g < 2; g++) {
        if (!goes_on_as(m[1 - g], d->ordinal + 1, m[g], d->ordinal)) continue;
        if (goes_on_as(m[g], d->ordinal + 1, m[1 - g], d->ordinal)) break;
        ranks_of_group(d, (size_t)g, ranks, &count);
        fputs("; ", out);
        slc_nccl_write_ranks(out, ranks, count);
        fputs(count == 1 ? " goes" : " go", out);
        fputs(" on with what ", out);
        ranks_of_group(d, (size_t)(1 - g), ranks, &count);
        slc_nccl_write_ranks(out, ranks, count);
        fputs(" called next", out);
        return "either the first of these left out a call, or the others made one too many: look for a condition that "
               "not all ranks meet";
    }
    return hint_for_arguments(call[0], call[1]);
}

/* Tells whether the two sequences fit again when one call is left out, or two are exchanged. `a` is of the larger
 * group. */
static const char *hint_for(const difference *d, const slc_nccl_member *a, const slc_nccl_member *b)
{
    uint64_t n = d->ordinal;
    const slc_nccl_entry *x = slc_nccl_member_collective(a, n), *y = slc_nccl_member_collective(b, n);
    const slc_nccl_entry *x1 = slc_nccl_member_collective(a, n + 1), *y1 = slc_nccl_member_collective(b, n + 1);
    if (b->failed && b->failed->number + 1 == y->number)
        return "the smaller group's call before it returned an error: look at its status";
    if (a->failed && a->failed->number + 1 == x->number)
        return "the larger group's call before it returned an error: look at its status";
    if (x1 && y1 && same_call(x, y1) && same_call(x1, y))
        return "the two calls are made in the opposite order: all ranks must call in the same order";
    bool skipped = goes_on_as(a, n + 1, b, n), extra = goes_on_as(a, n, b, n + 1);
    if (skipped && !extra) return "the smaller group left out a call: it goes on as the others did one call later";
    if (extra && !skipped) return "the smaller group made one call too many: it goes on as the others one call later";
    return hint_for_arguments(x, y);
}

static json_t *group_json(const slc_nccl_member *m, const slc_nccl_entry *entry, const int *ranks, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < count; i++)
        if (json_array_append_new(list, json_integer(ranks[i]))) {
            json_decref(list);
            return NULL;
        }
    return json_pack("{s:o, s:o}", "ranks", list, "call", slc_nccl_call_json(m, entry));
}

/* Training repeats itself: where the calls just before the nth were made before, in the same order, returns the ordinal
 * of what followed them then; 0 if they were not. */
static uint64_t find_earlier_step(const slc_nccl_member *m, uint64_t n)
{
    for (uint64_t at = n - 1; at > m->first + ALIKE && n - at < LOOK_BACK; at--) {
        uint64_t alike = 1;
        while (alike <= ALIKE &&
               same_call(slc_nccl_member_collective(m, at - alike), slc_nccl_member_collective(m, n - alike)))
            alike++;
        if (alike > ALIKE) return at;
    }
    return 0;
}

/* Tells which ranks are out of step, if some called what followed the same calls earlier and others did not. Returns
 * whether one left out a call. */
static bool write_suspects(FILE *out, const difference *d, int *ranks)
{
    size_t count;
    const slc_nccl_member *one = ranks_of_group(d, 0, ranks, &count);
    uint64_t n = d->ordinal, earlier = find_earlier_step(one, n);
    if (!earlier) return false;
    const slc_nccl_entry *due = slc_nccl_member_collective(one, earlier);
    const slc_nccl_entry *next = slc_nccl_member_collective(one, earlier + 1);
    bool some_right = false, some_left_out = false;
    for (size_t g = 0; g < d->group_count; g++)
        some_right |= same_call(slc_nccl_member_collective(ranks_of_group(d, g, ranks, &count), n), due);
    for (size_t g = 0; some_right && g < d->group_count; g++) {
        const slc_nccl_entry *entry = slc_nccl_member_collective(ranks_of_group(d, g, ranks, &count), n);
        if (same_call(entry, due)) continue;
        fputs("; going by earlier steps, ", out);
        slc_nccl_write_ranks(out, ranks, count);
        bool left_out = earlier + 1 < n && same_call(entry, next);
        fputs(left_out ? " left out a call" : " made the wrong call", out);
        some_left_out |= left_out;
    }
    return some_left_out;
}

static void write_difference(difference *d, slc_nccl_finding *f, int *ranks)
{
    const slc_nccl_communicator *c = d->communicator;
    const slc_nccl_member *largest = NULL, *smallest = NULL;
    size_t most = 0, least = SIZE_MAX;
    FILE *out = f->out;
    fprintf(out, ", %s %" PRIu64 ":", slc_nccl_ordinal_name(c), d->ordinal);
    for (size_t g = 0; g < d->group_count; g++) {
        size_t count;
        const slc_nccl_member *m = ranks_of_group(d, g, ranks, &count);
        const slc_nccl_entry *entry = slc_nccl_member_collective(m, d->ordinal);
        fputs(g ? ", " : " ", out);
        slc_nccl_write_ranks(out, ranks, count);
        fputs(" called ", out);
        slc_nccl_write_call(out, entry);
        slc_nccl_write_caller(out, m, entry);
        if (count > most) most = count, largest = m;
        if (count <= least) least = count, smallest = m;
        slc_nccl_finding_append(f, "groups", group_json(m, entry, ranks, count));
    }
    size_t others;
    if (ranks_of_group(d, MOST_GROUPS, ranks, &others)) fprintf(out, ", %zu others yet something else", others);
    if (write_suspects(out, d, ranks))
        f->hint = "look for a condition that not all ranks meet: an empty batch, an early exit, a branch on the rank";
    else
        f->hint =
            d->group_count == 2 && most == least ? hint_for_equals(out, d, ranks) : hint_for(d, largest, smallest);
    for (size_t i = 0; i < c->member_count; i++) {
        const slc_nccl_member *m = &c->members[i];
        const slc_nccl_entry *entry = slc_nccl_member_collective(m, d->ordinal);
        if (!entry) continue;
        slc_nccl_finding_not_before(f, m, entry);
        slc_nccl_finding_involve(f, d->all, m);
    }
    f->number = d->ordinal;
}

static uint64_t hash_term(const slc_nccl_entry *e)
{
    bool split = e->operation == SLC_RECORD_SPLIT;
    return slc_record_hash_term(e->operation, split ? 0 : e->count, e->dtype, e->redop, split ? -1 : e->peer);
}

/* The inverse of an odd number modulo 2^64: each step doubles the number of right bits. */
static uint64_t inverse(uint64_t odd)
{
    uint64_t x = odd;
    for (int i = 0; i < 5; i++) x *= 2 - odd * x;
    return x;
}

/* The rolling hash after the nth collective, from the row and the entries kept. Returns false if it cannot be known:
 * something was being written, or a call that failed is in it. */
static bool hash_after(const slc_nccl_member *m, uint64_t ordinal, uint64_t *out)
{
    const uint64_t back = inverse(SLC_RECORD_HASH_STEP);
    if (!m->first || m->failed_count || ordinal + 1 < m->first) return false;
    if (m->whole) {
        *out = m->row->key;
        for (uint64_t n = 1; n <= ordinal; n++)
            *out = *out * SLC_RECORD_HASH_STEP + hash_term(slc_nccl_member_collective(m, n));
        return true;
    }
    if (!m->still || m->called != m->row->collectives) return false;
    *out = m->row->hash;
    for (uint64_t n = m->called; n > ordinal; n--) *out = (*out - hash_term(slc_nccl_member_collective(m, n))) * back;
    return true;
}

/* Groups the ranks by their hashes after the last collective that all of them called. Returns whether they differ. */
static bool group_by_hash(difference *d, uint64_t *oldest)
{
    const slc_nccl_communicator *c = d->communicator;
    uint64_t common = UINT64_MAX;
    bool lost = false;
    *oldest = 0;
    for (size_t i = 0; i < c->member_count; i++) {
        const slc_nccl_member *m = &c->members[i];
        lost = lost || !m->whole;
        if (m->called < common) common = m->called;
        if (m->first > *oldest) *oldest = m->first;
    }
    if (!lost || c->member_count < 2) return false;
    const slc_nccl_member *one = NULL;
    for (size_t i = 0; i < c->member_count; i++) {
        d->group[i] = SIZE_MAX;
        if (!hash_after(&c->members[i], common, &d->hashes[i])) continue;
        if (!one) one = &c->members[i];
        uint64_t first = d->hashes[one - c->members];
        d->group[i] = d->hashes[i] != first;
        if (d->group[i]) d->group_count = 2;
    }
    return d->group_count == 2;
}

static sluice_status add_lost_difference(difference *d, slc_nccl_findings *findings, uint64_t oldest, int *ranks)
{
    const slc_nccl_communicator *c = d->communicator;
    slc_nccl_finding *f;
    sluice_status status = slc_nccl_finding_begin(findings, SLC_NCCL_FOUND_DIFFERS, d->all, c, &f);
    if (status) return status;
    FILE *out = f->out;
    size_t count;
    const slc_nccl_member *m = ranks_of_group(d, 0, ranks, &count);
    fputs(": ", out);
    slc_nccl_write_ranks(out, ranks, count);
    fputs(" called something else than ", out);
    ranks_of_group(d, 1, ranks, &count);
    slc_nccl_write_ranks(out, ranks, count);
    fprintf(out, " before %s %" PRIu64 ": the difference lies before the oldest entry kept", slc_nccl_ordinal_name(c),
            oldest);
    f->hint = "raise SLUICE_SHIM_ENTRIES, so that the records hold it, or watch from the start";
    f->time_ns = m->process->header.first_call_ns + m->process->header.realtime_minus_monotonic_ns;
    for (size_t i = 0; i < c->member_count; i++)
        if (d->group[i] != SIZE_MAX) slc_nccl_finding_involve(f, d->all, &c->members[i]);
    return slc_nccl_finding_end(findings);
}

sluice_status slc_nccl_find_difference(const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                       slc_nccl_findings *findings)
{
    difference d = {.all = all, .communicator = communicator, .ordinal = first_difference(communicator)};
    d.group = calloc(communicator->member_count, sizeof *d.group);
    d.hashes = calloc(communicator->member_count, sizeof *d.hashes);
    int *ranks = calloc(communicator->member_count, sizeof *ranks);
    sluice_status status = d.group && d.hashes && ranks ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "comparing ranks");
    uint64_t oldest;
    if (!status && d.ordinal) {
        slc_nccl_finding *f;
        group_by_call(&d);
        status = slc_nccl_finding_begin(findings, SLC_NCCL_FOUND_DIFFERS, all, communicator, &f);
        if (!status) {
            write_difference(&d, f, ranks);
            status = slc_nccl_finding_end(findings);
        }
    } else if (!status && group_by_hash(&d, &oldest)) {
        status = add_lost_difference(&d, findings, oldest, ranks);
    }
    free(d.group);
    free(d.hashes);
    free(ranks);
    return status;
}
