/* Tells one kind of end after the other: the kind of the earliest failure first, with all ranks that ended so. */
#include "bench/launch/rank_ends.h"

#include "lib/base/text/text_line.h"

#include <string.h>

enum { KINDS_MAX = 8 };

typedef struct {
    const slc_rank_end *ends;
    int ranks, after;
    slc_rank_end told[KINDS_MAX];
    int told_count;
    slc_text_line line;
} ends_line;

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
    slc_text_line_add(&l->line, several ? "ranks " : "rank ");
    for (int from = first; from < l->ranks;) {
        int end = next_rank(l, kind, from, false), next = next_rank(l, kind, end, true);
        slc_text_line_add(&l->line, "%s%d", from == first ? "" : next < l->ranks ? ", " : " and ", from);
        if (end - from > 1) slc_text_line_add(&l->line, "-%d", end - 1);
        from = next;
    }
    return several;
}

int slc_rank_ends_line(const slc_rank_end *ends, int ranks, int after, char *out, size_t bytes)
{
    ends_line l = {.ends = ends, .ranks = ranks, .after = after, .line = {out, bytes, 0}};
    *out = 0;
    for (const slc_rank_end *kind; l.told_count < KINDS_MAX && (kind = earliest(&l)); l.told[l.told_count++] = *kind) {
        if (l.line.used) slc_text_line_add(&l.line, "; ");
        bool several = add_ranks(&l, kind);
        if (kind->killed)
            slc_text_line_add(&l.line, " %s killed by signal %d (%s)", several ? "were" : "was", kind->number,
                              strsignal(kind->number));
        else if (kind->number == SLC_END_UNKNOWN)
            slc_text_line_add(&l.line,
                              " ended, and nobody knows how: %s reaped by another part of the launcher's process",
                              several ? "they were" : "it was");
        else
            slc_text_line_add(&l.line, " ended with exit code %d", kind->number);
    }
    if (earliest(&l)) slc_text_line_add(&l.line, "; others ended otherwise");
    return l.told_count;
}
