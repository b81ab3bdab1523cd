/* Tells one kind of end after the other: the kind of the earliest failure first, with all ranks that ended so. */
#include "bench/launch/rank_ends.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { KINDS_MAX = 8 };

typedef struct {
    const slc_rank_end *ends;
    int ranks, after;
    slc_rank_end told[KINDS_MAX];
    int told_count;
    char *text;
    size_t bytes, used;
} ends_line;

static void add(ends_line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(ends_line *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int more = vsnprintf(l->text + l->used, l->bytes - l->used, format, args);
    va_end(args);
    l->used += more < 0 ? 0 : (size_t)more;
    if (l->used >= l->bytes) l->used = l->bytes - 1;
}

static bool same_kind(const slc_rank_end *a, const slc_rank_end *b)
{
    return a->killed == b->killed && a->number == b->number;
}

static bool is_told(const ends_line *l, const slc_rank_end *end)
{
    for (int i = 0; i < l->told_count; i++)
        if (same_kind(&l->told[i], end)) return true;
    return false;
}

/* Returns the earliest failure whose kind is still to be told; NULL: there is none. */
static const slc_rank_end *earliest(const ends_line *l)
{
    const slc_rank_end *best = NULL;
    for (int i = 0; i < l->ranks; i++) {
        const slc_rank_end *end = &l->ends[i];
        if (end->place > l->after && !is_told(l, end) && (!best || end->place < best->place)) best = end;
    }
    return best;
}

/* Returns the first rank from `rank` on that ended as `kind` did, or, with `ended` false, that did not. */
static int next_rank(const ends_line *l, const slc_rank_end *kind, int rank, bool ended)
{
    while (rank < l->ranks && (l->ends[rank].place > l->after && same_kind(&l->ends[rank], kind)) != ended) rank++;
    return rank;
}

/* Adds "rank 3", "ranks 0 and 2" or "ranks 0, 2 and 5-7". Returns whether they are several. */
static bool add_ranks(ends_line *l, const slc_rank_end *kind)
{
    const int first = next_rank(l, kind, 0, true);
    const bool several = next_rank(l, kind, first + 1, true) < l->ranks;
    add(l, several ? "ranks " : "rank ");
    for (int from = first; from < l->ranks;) {
        int end = next_rank(l, kind, from, false), next = next_rank(l, kind, end, true);
        add(l, "%s%d", from == first ? "" : next < l->ranks ? ", " : " and ", from);
        if (end - from > 1) add(l, "-%d", end - 1);
        from = next;
    }
    return several;
}

int slc_rank_ends_line(const slc_rank_end *ends, int ranks, int after, char *out, size_t bytes)
{
    ends_line l = {.ends = ends, .ranks = ranks, .after = after, .text = out, .bytes = bytes};
    *out = 0;
    for (const slc_rank_end *kind; l.told_count < KINDS_MAX && (kind = earliest(&l)); l.told[l.told_count++] = *kind) {
        if (l.used) add(&l, "; ");
        bool several = add_ranks(&l, kind);
        if (kind->killed)
            add(&l, " %s killed by signal %d (%s)", several ? "were" : "was", kind->number, strsignal(kind->number));
        else if (kind->number == SLC_END_UNKNOWN)
            add(&l, " ended, and nobody knows how: %s reaped by another part of the launcher's process",
                several ? "they were" : "it was");
        else
            add(&l, " ended with exit code %d", kind->number);
    }
    if (earliest(&l)) add(&l, "; others ended otherwise");
    return l.told_count;
}
